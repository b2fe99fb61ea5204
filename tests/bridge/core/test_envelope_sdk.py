"""Our JSON is the same, byte for byte, as that of the CloudEvents SDK."""

import subprocess
import sys
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given, settings
from support.any_message import as_sdk, drafts
from support.messages import told, transition_of
from support.world import NOON, OBSERVER

from bridge.core.envelope import Draft, write
from bridge.core.model import writable


@settings(deadline=None)
@given(draft=drafts())
def test_every_cloudevent_has_the_bytes_that_the_sdk_writes(draft: Draft):
    made = write(draft, OBSERVER)

    assert made.body == JSONFormat().write(as_sdk(made, writable(draft.data)))


def nested(depth: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    return deep


@pytest.mark.parametrize("depth", [1, 60, 61, 62, 63, 64, 65, 2000])
def test_data_of_any_depth_has_the_bytes_that_the_sdk_writes(depth: int):
    data = {"deep": nested(depth), "half": float("nan")}
    made = write(Draft("scheduled", "1", NOON, "scheduled-event", 13, "A", data), OBSERVER)

    assert made.body == JSONFormat().write(as_sdk(made, writable(data)))


def test_a_value_that_is_not_json_is_refused():
    odd = Draft("scheduled", "1", NOON, "scheduled-event", 13, "A", {"odd": object()})

    with pytest.raises(TypeError, match="cannot write object into a CloudEvent"):
        write(odd, OBSERVER)


def test_attributes_and_data_are_read_apart_as_they_were_written():
    made = told(transition_of("scheduled", description='quotes ", "data": {'))
    attributes, data = made.parts

    assert attributes == made.attributes == {k: v for k, v in made.envelope.items() if k != "data"}
    assert data == JSONFormat().write_data(made.data, "application/json")


def test_the_sdk_is_not_needed_to_write_and_send_a_cloudevent():
    program = """
import sys
from datetime import UTC, datetime
from bridge.core.envelope import Draft, write
from bridge.core.observer import Observer
from sinks.kafka.binding import encode
import sinks.mqtt.binding
draft = Draft("scheduled", "1", datetime.now(UTC), "scheduled-event", 13, "A", {})
encode(write(draft, Observer()), "binary")
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert "cloudevents" not in done.stdout.decode().split()
