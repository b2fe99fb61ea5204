"""Whatever arrives on a bus, as its client library delivers it, never reaches Azure unsigned."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks import ORDERS, RULES, signed
from support.bridge import cast_votes, event_id, group, plan
from support.fuzzing import again, damaged

from bridge.common.signatures import HEADERS
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE
from sinks.kafka.source import Reader
from sinks.mqtt.binding import Arrival, body_of, headers_of

EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
"""Stands for the EventId of the pending event, which the simulator chooses."""
STATE = "9f" * 32
GOOD = signed(ORDERS, EVENT, "good")
ATTRIBUTES = {"specversion": "1.0", "type": APPROVE, "source": "/o", "id": "1"}
PLAIN = {"eventId": EVENT, "approver": "orders", "decision": "approve", "id": "a", "seen": STATE}
BODIES = damaged(
    st.sampled_from(
        [
            GOOD.body,
            GOOD.wrapped(),
            json.dumps(PLAIN).encode(),
            json.dumps({**ATTRIBUTES, "data": PLAIN}).encode(),
            json.dumps({**ATTRIBUTES, "data_base64": "eyJldmVudElkIjogIngifQ=="}).encode(),
            json.dumps({"StartRequests": [{"EventId": EVENT}] * 3}).encode(),
            b"",
        ]
    )
)
NAMES = st.sampled_from(
    [*HEADERS, "Content-Type", "content-type", "SpecVersion", *(f"ce_{name}" for name in ATTRIBUTES),
     *(f"ce-{name}" for name in ATTRIBUTES), *ATTRIBUTES]
) | st.text(max_size=9)  # fmt: skip
VALUES = st.sampled_from(
    [*ATTRIBUTES.values(), *(value for _, value in GOOD.headers), "application/cloudevents+json", ""]
) | st.text(max_size=30)  # fmt: skip
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6) | st.just(list(GOOD.headers))


def kafka(body, pairs, key, offset, timestamp):
    """A record as aiokafka delivers it, read as the source reads it."""
    headers = [(name, value.encode() or None) for name, value in pairs]
    record = ConsumerRecord("t", 0, offset, timestamp, 0, key, body or None, None, 0, 0, headers)
    subscription: Any = SimpleNamespace(read={}, cluster="c")
    listening: Any = SimpleNamespace(name="bus")
    reader = Reader(subscription, listening)
    return reader._read(record)


def mqtt(must_sign, body, pairs, content_type, correlation):
    arrival = Arrival(body, content_type, pairs, correlation)
    assert arrival.is_tombstone in (True, False)
    return Delivery(body_of(arrival, signed=must_sign), headers_of(arrival))


RECORDS = st.builds(
    lambda *given: lambda _: kafka(*given),
    *(BODIES, PAIRS, st.none() | st.binary(max_size=9)),
    st.integers(0, 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
)
CORRELATIONS = st.sampled_from([EVENT.encode(), f"{EVENT}/{STATE}".encode()]) | st.binary()
ARRIVALS = st.builds(
    lambda *given: lambda must_sign: mqtt(must_sign, *given),
    *(BODIES, PAIRS, st.none() | VALUES, st.none() | CORRELATIONS),
)


@pytest.mark.fuzz
def test_whatever_a_bus_delivers_is_taken_and_never_reaches_azure_unsigned(tmp_path):
    @settings(max_examples=150)
    @given(RECORDS | ARRIVALS, st.booleans())
    def attack(make, must_sign):
        runner.run(take(make(must_sign), must_sign=must_sign))

    async def take(delivery, *, must_sign):
        key = event_id(made)
        body = delivery.body.replace(EVENT.encode(), key.encode())
        given = Delivery(body, delivery.headers, recorded=delivery.recorded, unread=delivery.unread)
        await bridge.intake.take(given, "bus", must_sign=must_sign)
        for vote in await cast_votes(bridge, key):
            assert not vote.verified
        await bridge.consider()
        assert made.posts() == []

    with asyncio.Runner() as runner:
        manager = group(tmp_path, "vm-0", "vm-1")
        made = runner.run(manager.__aenter__())
        try:
            plan(made)
            bridge = runner.run(made.bridge(**RULES))
            again(attack)
        finally:
            runner.run(manager.__aexit__(None, None, None))
