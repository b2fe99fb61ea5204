"""What happens in the simulated Azure, without HTTP."""
