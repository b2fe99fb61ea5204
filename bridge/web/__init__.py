"""The bridge over HTTP: control socket, console, API and stream, probes and metrics.

Read access (who may call), api and stream (what they get), health, then server.
"""

from bridge.web.access.sessions import Sessions
from bridge.web.server import CannotListen, Served, check_tls, serve

__all__ = ["CannotListen", "Served", "Sessions", "check_tls", "serve"]
