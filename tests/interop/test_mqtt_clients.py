"""MQTT: clients in Go and JavaScript, and servers that are not Mosquitto."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import foreign
from support.bridge_process import announce, stage
from support.debian import ToolFailed, run_tool
from support.foreign import Json, Language
from support.foreign_events import approved, faithful, vote
from support.mosquitto_clients import Address
from support.mqtt_stage import mqtt_sink, new_root
from support.ports import free_ports

pytestmark = pytest.mark.timeout(240)
GROUP = "MQTT"
GO = foreign.go_version("github.com/cloudevents/sdk-go/protocol/mqtt_paho/v2")
CLIENTS: dict[Language, tuple[str, str]] = {
    "Go": (
        f"CloudEvents SDK for Go {GO} with paho",
        foreign.go_version("github.com/eclipse/paho.golang"),
    ),
    "JavaScript": (
        f"CloudEvents SDK for JavaScript {foreign.npm_version('cloudevents')} with mqtt",
        foreign.npm_version("mqtt"),
    ),
}
READS = {
    "Go": [("binary", {"mode": "binary", "attribute_prefix": "ce-"})],
    "JavaScript": [("structured", {}), ("binary", {"mode": "binary"})],
}


def configuration(folder: Path, broker: Address, root: str, **sink: str) -> Json:
    source = {"sink": "plant", "topic": f"{root}/approvals", "trust": "transport"}
    file = {"type": "file", "path": str(folder / "events.jsonl")}
    return {
        "sinks": {"plant": mqtt_sink(broker, root, **sink), "file": file},
        "approvals": {"from": {"votes": {**source, "client_id": f"approvals-{root}"}}},
    }


def address(language: Language, broker: Address) -> str:
    place = f"{broker.host}:{broker.port}"
    return place if language == "Go" else f"mqtt://{place}"


async def loop(language: Language, broker: Address, folder: Path, root: str, **sink: str) -> None:
    """It reads an announcement, votes in both modes, and Azure is told."""
    where = address(language, broker)
    async with stage(folder, **configuration(folder, broker, root, **sink)) as at:
        topic = f"{root}/events/+"
        async with foreign.running(language, "mqtt-receive", where, topic, "999") as reader:
            await reader.next()
            await at.start()
            events = {
                mode: announce(at, mode, started_for=None) for mode in ("binary", "structured")
            }
            for _ in events:
                read = await reader.until(lambda one: str(one.get("type")).endswith("scheduled.v1"))
                await faithful(at, read)
        await at.until_said("approvals.connected")
        for mode, event in events.items():
            sent = await foreign.ask(
                language, "mqtt-send", where, f"{root}/approvals", mode, vote(event)
            )
            assert sent
            await approved(at, event)
        assert await at.stop() == 0


@pytest.mark.parametrize("language", CLIENTS)
async def test_a_client_reads_our_cloudevents_and_its_votes_count(
    mosquitto: Address, tmp_path: Path, language: Language, proves
):
    for mode, keys in READS[language]:
        more = " with attribute_prefix" if "attribute_prefix" in keys else ""
        proves(GROUP, *CLIENTS[language], f"reads events, {mode}{more}")
        folder = tmp_path / mode
        await loop(language, mosquitto, folder, new_root(), **keys)
    proves(GROUP, *CLIENTS[language], "sends votes, binary and structured")
    proves(GROUP, "Mosquitto", await mosquitto_version(), "carries events and votes")


async def mosquitto_version() -> str:
    try:
        said = (await run_tool("mosquitto", "-h")).decode()
    except ToolFailed as error:  # asking for help is a failure
        said = str(error)
    found = re.search(r"mosquitto version (\S+)", said)
    assert found is not None, said
    return found[1]


@contextlib.asynccontextmanager
async def mochi(_: Path) -> AsyncIterator[Address]:
    async with foreign.running("Go", "mochi") as server:
        host, _, port = (await server.next())["address"].rpartition(":")
        yield Server(host, int(port))


@contextlib.asynccontextmanager
async def hivemq(folder: Path) -> AsyncIterator[Address]:
    port = free_ports(1)[0]
    async with foreign.running("Java", "hivemq", str(port), str(folder / "hivemq")) as server:
        await server.next()
        yield Server("127.0.0.1", port)


class Server:
    """A server on loopback."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port


SERVERS = {
    "mochi": (mochi, "mochi", foreign.go_version("github.com/mochi-mqtt/server/v2")),
    "hivemq": (
        hivemq,
        "HiveMQ CE",
        foreign.java_version("hivemq-community-edition-embedded"),
    ),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_another_server_carries_events_and_votes(tmp_path: Path, name: str, proves):
    start, software, version = SERVERS[name]
    proves(GROUP, software, version, "carries events and votes")
    async with start(tmp_path) as server:
        await loop("Go", server, tmp_path, new_root(), mode="binary", attribute_prefix="ce-")
