"""How the bridge is: readiness with its reasons, and metrics."""
