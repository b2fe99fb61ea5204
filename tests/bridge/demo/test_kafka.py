"""The demo's cluster, and the service that drains and approves."""

import asyncio
import json
from typing import Any

import pytest
from support.cloudevents import STATE, make
from support.until import until

from bridge.demo.kafka import APPROVALS, EVENTS, QUIET, Cluster, Service

kafka = pytest.importorskip("confluent_kafka")


def produce(bootstrap: str, number: int, event_type: str) -> str:
    told = make(number, eventType=event_type)
    headers = [("ce_type", told.type), ("ce_time", told.envelope["time"])]
    writer = kafka.Producer({"bootstrap.servers": bootstrap, **QUIET})
    writer.produce(EVENTS, json.dumps(told.data).encode(), headers=headers)
    assert writer.flush(10) == 0
    return str(told.data["eventId"])


def approvals(bootstrap: str) -> list[dict[str, Any]]:
    """The first message, within a time limit."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "t", "auto.offset.reset": "earliest"}
    reader = kafka.Consumer({**settings, **QUIET})
    reader.subscribe([APPROVALS])
    try:
        record = reader.poll(15)
        return [] if record is None else [json.loads(record.value())]
    finally:
        reader.close()


async def test_a_reboot_is_drained_for_and_then_approved():
    told: list[dict[str, Any]] = []
    notes: list[str] = []
    cluster = await asyncio.to_thread(Cluster.start)
    service = Service(cluster.bootstrap, 0.0, told.append, notes.append)
    working = asyncio.create_task(service.run())
    try:
        await asyncio.to_thread(produce, cluster.bootstrap, 1, "Freeze")
        event_id = await asyncio.to_thread(produce, cluster.bootstrap, 2, "Reboot")
        await until(lambda: len(notes) >= 2 and len(told) >= 2, patience=20)
        found = await asyncio.to_thread(approvals, cluster.bootstrap)
    finally:
        service.stop()
        await working
    assert sorted(one["data"]["eventType"] for one in told) == ["Freeze", "Reboot"]
    said = {"eventId": event_id, "approver": "orders-service", "reason": "drained"}
    assert found == [{**said, "seen": STATE}]
    assert notes == [
        "orders-service starts to drain",
        f"orders-service is drained, and approves on {APPROVALS}",
    ]
