"""What happens in the simulated Azure; it knows nothing of HTTP."""
