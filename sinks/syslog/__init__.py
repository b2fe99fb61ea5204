"""CloudEvents as syslog messages (RFC 5424) over UDP, TCP or TLS, their text in any format.

Read `settings`, then `binding` (pure: header, structured data, frames), `delivery` (a batch),
`connection` (what can be known of a protocol without acknowledgments), `datagrams` and `errors`.
"""

from bridge.plugins import SinkPlugin
from sinks.syslog.check import check_sink
from sinks.syslog.delivery import open_sink
from sinks.syslog.settings import SyslogSettings

__all__ = ["SyslogSettings", "sink"]

sink = SinkPlugin(settings=SyslogSettings, open=open_sink, check=check_sink)
