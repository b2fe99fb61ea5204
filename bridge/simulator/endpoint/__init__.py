"""How the simulated Azure tells what happens, over HTTP."""
