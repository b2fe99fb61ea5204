"""The bridge over HTTP: control socket, API and stream, probes and metrics.

Read access (who may call), api and stream (what they get), health, then server.
"""

from bridge.web.server import CannotListen, Served, check_tls, serve

__all__ = ["CannotListen", "Served", "check_tls", "serve"]
