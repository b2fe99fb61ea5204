"""The sink `mqtt`: CloudEvents as MQTT messages, acknowledged by the server; with paho.

Read `settings`, then `delivery` (a batch), `connection` (the server and our credentials),
`client` (one connection, for asyncio), `network` (paho and its thread), `errors` (what went wrong,
in our words). `binding` and `topics` are pure. Approvals come the other way, by `source`.
"""

from bridge.plugins import ApprovalPlugin, SinkPlugin
from sinks.mqtt.check import check_sink, check_source
from sinks.mqtt.delivery import open_sink
from sinks.mqtt.settings import Connection, MqttSettings
from sinks.mqtt.source import MqttApprovals, listen

__all__ = ["Connection", "MqttApprovals", "MqttSettings", "approvals", "sink"]

sink = SinkPlugin(settings=MqttSettings, open=open_sink, check=check_sink)
approvals = ApprovalPlugin(settings=MqttApprovals, open=listen, check=check_source)
