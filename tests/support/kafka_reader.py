"""Reads a topic by the CloudEvents Kafka binding, without the sink's code."""

import json
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition


@dataclass(frozen=True)
class Found:
    """One record."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    partition: int
    offset: int
    at: int = 0
    """Its time, in milliseconds."""

    @property
    def envelope(self) -> dict[str, Any]:
        """The CloudEvent in it, as attributes and data in one object."""
        headers = dict(self.headers)
        assert len(headers) == len(self.headers), "a header stands twice"
        kind = headers["content-type"].decode()
        if kind.lower().startswith("application/cloudevents"):
            return json.loads(self.value or b"")
        found: dict[str, Any] = {
            name.removeprefix("ce_"): value.decode()
            for name, value in headers.items()
            if name.startswith("ce_")
        }
        if "severitynumber" in found:
            found["severitynumber"] = int(found["severitynumber"])
        return found | {"datacontenttype": kind, "data": json.loads(self.value or b"")}


async def read_topic(bootstrap: str, topic: str) -> list[Found]:
    """Everything up to now, partition by partition."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [
            TopicPartition(topic, number)
            for number in sorted(await consumer._client._wait_on_metadata(topic))
        ]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[Found] = []
        while any([await consumer.position(part) < ends[part] for part in partitions]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [
                    Found(r.key, r.value, list(r.headers), r.partition, r.offset, r.timestamp)
                    for r in records
                ]
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        await consumer.stop()
