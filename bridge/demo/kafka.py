"""The demo's Kafka: a cluster in this process, and a service that drains and approves.

The service shares no code with the bridge: it is what a user's own consumer would look like.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bridge.demo.extras import need

EVENTS = "azure.scheduled-events"
APPROVALS = "azure.scheduled-events.approvals"
QUIET = {"log_level": 0}


@dataclass(slots=True)
class Cluster:
    """librdkafka's in-memory brokers; they end with this process."""

    bootstrap: str
    _host: Any = field(repr=False, default=None)

    @classmethod
    def start(cls) -> "Cluster":
        (kafka,) = need("kafka", ["confluent_kafka"])
        host = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, **QUIET})
        brokers = host.list_topics(timeout=10).brokers.values()
        for topic in (EVENTS, APPROVALS):
            host.list_topics(topic, timeout=10)
        return cls(",".join(f"{one.host}:{one.port}" for one in brokers), host)


@dataclass(slots=True)
class Service:
    """Reads the events topic; when a Reboot is announced, it drains for a while and approves."""

    bootstrap: str
    drain_for: float
    tell: Callable[[dict[str, Any]], None]
    note: Callable[[str], None]
    _over: threading.Event = field(default_factory=threading.Event)
    _seen: dict[str, str] = field(default_factory=dict)
    """The latest state of each event: it is ready for that, and for nothing worse."""

    async def run(self) -> None:
        """Consume in a separate thread until canceled."""
        try:
            await asyncio.to_thread(self._consume)
        finally:
            self._over.set()

    def stop(self) -> None:
        self._over.set()

    def _consume(self) -> None:
        from confluent_kafka import Consumer, Producer  # noqa: PLC0415  an extra

        settings = {"bootstrap.servers": self.bootstrap, **QUIET}
        reader = Consumer({**settings, "group.id": "orders", "auto.offset.reset": "earliest"})
        writer = Producer(settings)
        reader.subscribe([EVENTS])
        ready: dict[str, float] = {}
        while not self._over.is_set():
            record = reader.poll(0.2)
            if record is not None and record.error() is None:
                self._heard(record, ready)
            for event_id in [one for one, due in ready.items() if time.monotonic() >= due]:
                del ready[event_id]
                self._approve(writer, event_id)
        reader.close()

    def _heard(self, record: Any, ready: dict[str, float]) -> None:
        """Binary mode: the attributes are headers, the value is the data."""
        headers = {name: value.decode() for name, value in record.headers() or ()}
        data = json.loads(record.value())
        self.tell({"type": headers["ce_type"], "time": headers["ce_time"], "data": data})
        if "state" in data:
            self._seen[data["eventId"]] = data["state"]
        if headers["ce_type"].endswith(".scheduled.v1") and data["eventType"] == "Reboot":
            ready[data["eventId"]] = time.monotonic() + self.drain_for
            self.note("orders-service starts to drain")

    def _approve(self, writer: Any, event_id: str) -> None:
        said = {"eventId": event_id, "approver": "orders-service", "reason": "drained"}
        said["seen"] = self._seen[event_id]
        writer.produce(APPROVALS, json.dumps(said).encode())
        writer.flush(5)
        self.note(f"orders-service is drained, and approves on {APPROVALS}")
