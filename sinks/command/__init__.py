"""A program of your own for each CloudEvent: fed on stdin, judged by its exit code.

Read `settings`, then `delivery` (a batch), `process` (one run), `environment` (what a run is told)
and `errors` (what its exit code means).
"""

from bridge.plugins import SinkPlugin
from sinks.command.check import check_sink
from sinks.command.delivery import open_sink
from sinks.command.settings import CommandSettings

__all__ = ["CommandSettings", "sink"]

sink = SinkPlugin(settings=CommandSettings, open=open_sink, check=check_sink)
