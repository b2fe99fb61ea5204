"""The sink `command`: runs your program for each CloudEvent and reads its exit code.

Read `settings`, then `delivery` (a batch), `process` (one run), `environment` (its variables)
and `errors` (what its exit code means).
"""

from bridge.plugins import SinkPlugin
from sinks.command.check import check_sink
from sinks.command.delivery import open_sink
from sinks.command.settings import CommandSettings

__all__ = ["CommandSettings", "sink"]

sink = SinkPlugin(settings=CommandSettings, open=open_sink, check=check_sink)
