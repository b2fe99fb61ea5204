"""What Azure says, what happened, and the CloudEvents about it; pure."""
