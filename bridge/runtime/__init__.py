"""What all tasks of one bridge share: identity, status, and audited actions."""
