"""The simulated Azure over HTTP."""
