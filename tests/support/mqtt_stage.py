"""A bridge process between the simulator and Mosquitto, with Mosquitto's own clients at the other end."""

import contextlib
import json
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from support import judge
from support.bridge_process import Stage, stage
from support.cloudevents import unbound
from support.mosquitto_clients import Address, Subscriber

Json = dict[str, Any]


def mqtt_sink(broker: Address, root: str, **more: Any) -> Json:
    """Below a root that belongs to this test."""
    topics = {"topic": f"{root}/events/{{subject}}", "birth_topic": f"{root}/bridges/{{observer}}"}
    return {"type": "mqtt", "host": broker.host, "port": broker.port, **topics, **more}


def approvals_topic(root: str) -> str:
    return f"{root}/approvals"


@contextlib.asynccontextmanager
async def mqtt_stage(
    folder: Path, broker: Address, root: str, **more: Any
) -> AsyncGenerator[Stage]:
    """One sink `plant`, and approvals by its connection; *more* are keys of the sink.

    Tests share the server and the VM's id. A client id of its own keeps a test from the session of
    another one.
    """
    source = {"sink": "plant", "topic": approvals_topic(root), "trust": "transport"}
    config: Json = {
        "sinks": {"plant": mqtt_sink(broker, root, **more)},
        "approvals": {"from": {"plant": {**source, "client_id": f"approvals-{root}"}}},
    }
    async with stage(folder, **config, stop_grace="5s") as made:
        yield made


def new_root() -> str:
    return f"root-{uuid.uuid4()}"


def envelope(message: Json) -> Json:
    """The CloudEvent in it, as the MQTT binding has it."""
    found = message.get("properties", {})
    structured = found.get("content-type", "application/cloudevents+json")
    if structured.startswith("application/cloudevents"):
        return json.loads(message["payload"])
    return unbound(found["user-properties"], found["content-type"], message["payload"])


def kind(message: Json) -> str:
    return judge.kind(envelope(message))


async def until_told(found: Subscriber, *expected: str, of: str) -> dict[str, Json]:
    """The first message of each kind about one scheduled event, once all are there."""

    def told() -> dict[str, Json]:
        mine = [each for each in found.messages if each["topic"].endswith(f"/{of}")]
        return {kind(each): each for each in reversed(mine)}

    await found.until(lambda _: told().keys() >= {*expected}, f"{expected} of {of}")
    return {each: told()[each] for each in expected}
