"""The bridge over HTTP: control socket, API and stream, probes and metrics.

Read access (who may), api and stream (what there is), health (how it is), then server.
"""

from bridge.web.server import CannotListen, Served, check_tls, serve

__all__ = ["CannotListen", "Served", "check_tls", "serve"]
