"""Start, reload and stop."""
