"""The sink `kafka`: CloudEvents as records, acknowledged by all in-sync replicas; with aiokafka.

Read `settings`, then `delivery` (a batch), `producer` and `connection` (bounded and cancellable
where aiokafka is not), `errors` (what went wrong, in our words). `binding` is pure. Approvals come
the other way: `source`, then `subscription` and `consumer`.
"""

from bridge.plugins import ApprovalPlugin, SinkPlugin
from sinks.kafka.check import check_sink
from sinks.kafka.delivery import open_sink
from sinks.kafka.settings import Connection, KafkaSettings
from sinks.kafka.source import KafkaApprovals, listen

__all__ = ["Connection", "KafkaApprovals", "KafkaSettings", "approvals", "sink"]

sink = SinkPlugin(settings=KafkaSettings, open=open_sink, check=check_sink)
approvals = ApprovalPlugin(settings=KafkaApprovals, open=listen)
