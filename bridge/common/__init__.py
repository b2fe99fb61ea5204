"""What any room may use, and that knows nothing of scheduled events."""
