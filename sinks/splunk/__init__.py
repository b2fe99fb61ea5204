"""CloudEvents to Splunk's HTTP Event Collector, and if asked for, until they are indexed.

Read `settings`, then `delivery` (a batch), `connection` (one request) and `errors` (what an answer
means, or that there is none). `binding` is pure.
"""

from bridge.plugins import SinkPlugin
from sinks.splunk.check import check_sink
from sinks.splunk.delivery import open_sink
from sinks.splunk.settings import SplunkSettings

__all__ = ["SplunkSettings", "sink"]

sink = SinkPlugin(settings=SplunkSettings, open=open_sink, check=check_sink)
