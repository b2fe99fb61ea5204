"""The health of the bridge: readiness with its reasons, and metrics."""
