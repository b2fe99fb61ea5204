"""The Windows service under Wine, end to end: the brokers, receivers and the metadata service are on Linux."""

import contextlib
import json
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from support.kafka_broker import Broker
from support.kafka_reader import read_topic
from support.lacking import lacking
from support.mosquitto import Mosquitto
from support.mosquitto_clients import Subscriber, mosquitto_sub
from support.until import until
from support.webhook_receiver import Receiver, receiving
from support.wine import PATIENCE, Wine, configuration, windows_path

from bridge.simulator import Simulator

pytestmark = pytest.mark.timeout(600)
EVENTS = r"C:\ProgramData\scheduled-events-bridge\state\events.jsonl"


@dataclass
class Service:
    """The service with its world: what it sees, and whom it tells."""

    wine: Wine
    simulator: Simulator
    receiver: Receiver
    config: dict[str, Any] = field(default_factory=dict)

    def configure(self) -> None:
        self.wine.data.mkdir(parents=True, exist_ok=True)
        (self.wine.data / "config.yaml").write_text(json.dumps(self.config))

    def announce(self, name: str) -> str:
        usual: dict[str, Any] = {"type": "Reboot", "notice": "15m", "started_for": "1s"}
        return self.simulator.world.create(name=name, **usual).event.key

    def written(self) -> list[dict[str, Any]]:
        """The CloudEvents in the file of the file sink."""
        with contextlib.suppress(FileNotFoundError):
            text = (self.wine.data / "state" / "events.jsonl").read_text()
            return [
                json.loads(line) for line in text.splitlines(keepends=True) if line[-1:] == "\n"
            ]
        return []

    def posted(self) -> set[str]:
        done = [record for record in self.simulator.truth if record["what"] == "approval"]
        return {one.upper() for record in done for one in record["eventIds"]}

    async def until(self, condition: Any, what: str) -> None:
        await until(condition, what, self.wine.log, patience=PATIENCE)


def announced(envelopes: list[dict[str, Any]], event_id: str) -> bool:
    kind = "azure.scheduledevents.scheduled.v1"
    return any(one["type"] == kind and one["subject"] == event_id for one in envelopes)


@pytest.fixture
async def service(wine: Wine) -> AsyncIterator[Service]:
    shutil.rmtree(wine.data, ignore_errors=True)
    async with Simulator() as simulator, receiving() as receiver:
        config = configuration(
            source={"endpoint": simulator.endpoint, "poll_interval": "200ms"},
            sinks={
                "log": {"type": "file", "path": EVENTS},
                "pager": {"type": "webhook", "url": receiver.url, "retry": {"timeout": "30s"}},
            },
        )
        made = Service(wine, simulator, receiver, config)
        made.configure()
        await wine.seb("service", "install", "--manual")
        try:
            yield made
        finally:
            receiver.release()
            await wine.seb("service", "remove")


async def test_the_service_tells_every_sink_and_takes_approvals_by_pipe_and_by_kafka(
    service: Service, kafka: Broker, mosquitto: Mosquitto
):
    kafka.must_be_real("the approval source finds its place by time")
    events, votes = await kafka.topic(), await kafka.topic()
    mine = f"seb/{uuid.uuid4().hex}"
    servers = kafka.bootstrap.split(",")
    service.config["sinks"] |= {
        "bus": {"type": "kafka", "bootstrap_servers": servers, "topic": events},
        "floor": {
            "type": "mqtt", "host": mosquitto.host, "port": mosquitto.port, "topic": f"{mine}/{{subject}}",
        },
    }  # fmt: skip
    service.config["approvals"] = {
        "from": {"bus": {"sink": "bus", "topic": votes, "trust": "transport"}}
    }
    service.config["control_group"] = "Users"
    service.configure()
    async with mosquitto_sub(mosquitto, f"{mine}/#") as subscriber:
        assert "runs" in await service.wine.seb("service", "start")
        first, second = service.announce("first"), service.announce("second")
        for event_id in (first, second):
            await service.until(lambda one=event_id: told(service, subscriber, one), "three sinks")
            assert await on_topic(kafka, events, event_id)
        assert "ready" in await service.wine.seb("health", "--ready")
        await service.wine.seb("approve", first)
        await service.until(lambda: first in service.posted(), "the approval by pipe")
        await vote(kafka, votes, second)
        await service.until(lambda: second in service.posted(), "the approval by Kafka")
        assert "has stopped" in await service.wine.seb("service", "stop")
    assert '"event": "bridge.stopped"' in service.wine.log()


def told(service: Service, subscriber: Subscriber, event_id: str) -> bool:
    by_mqtt = [message for message in subscriber.messages if message["topic"].endswith(event_id)]
    return bool(
        by_mqtt
        and announced(service.written(), event_id)
        and announced(service.receiver.taken, event_id)
    )


async def on_topic(kafka: Broker, topic: str, event_id: str) -> bool:
    async def there() -> bool:
        found = [record.envelope for record in await read_topic(kafka.bootstrap, topic)]
        return announced(found, event_id)

    await until(there, "the CloudEvent on the topic", patience=PATIENCE)
    return True


async def vote(kafka: Broker, topic: str, event_id: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all")
    await producer.start()
    try:
        body = json.dumps({"eventId": event_id, "approver": "orders", "resource": "vm-0"})
        await producer.send_and_wait(topic, body.encode())
    finally:
        await producer.stop()


async def test_a_stop_in_the_middle_of_a_drain_loses_nothing(service: Service):
    service.receiver.stall()
    await service.wine.seb("service", "start")
    ids = [service.announce(f"event {number}") for number in range(5)]
    await service.until(
        lambda: all(announced(service.written(), one) for one in ids), "the events in the file"
    )
    assert service.receiver.taken == []
    await service.wine.seb("service", "stop")
    assert '"event": "bridge.stopped"' in service.wine.log()
    assert service.receiver.taken == []
    service.receiver.release()
    await service.wine.seb("service", "start")
    written = {one["id"] for one in service.written()}
    await service.until(
        lambda: written <= set(service.receiver.ids()), "what waited in the journal"
    )
    assert {one["subject"] for one in service.receiver.taken} >= set(ids)


async def test_a_killed_service_resumes_and_nothing_is_lost(service: Service):
    service.receiver.stall()
    await service.wine.seb("service", "start")
    before = service.announce("before")
    await service.until(lambda: announced(service.written(), before), "the event in the file")
    service.wine.kill_service()
    await service.until(lambda: not service.wine.service_lives, "its end")
    meanwhile = service.announce("meanwhile")
    service.receiver.release()
    await start_after_kill(service)
    for event_id in (before, meanwhile):
        await service.until(
            lambda one=event_id: announced(service.receiver.taken, one), "all events at the webhook"
        )
    count = [one["subject"] for one in service.written() if one["type"].endswith(".scheduled.v1")]
    assert sorted(count) == sorted({before, meanwhile})


async def start_after_kill(service: Service) -> None:
    """Windows starts it again by itself; Wine has no recovery actions, and notices the end late."""

    async def started() -> bool:
        code, _ = await service.wine.run("-I", "-m", "bridge.cli", "service", "start")
        return code == 0

    await until(started, "the service again", service.wine.log, patience=PATIENCE)


async def test_a_configuration_that_is_wrong_stops_the_service_with_its_code(service: Service):
    (service.wine.data / "config.yaml").write_text("sinks: 7\n")
    code, said = await service.wine.run("-I", "-m", "bridge.cli", "service", "start")
    assert code == 1
    assert "it ended with 78" in said
    assert '"exit_code": 78' in service.wine.log()
    service.configure()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=False
    )
    if mounted.returncode != 0:
        lacking("only root can mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_on_a_full_disk_events_go_out_from_memory_and_are_recorded_when_there_is_space(
    service: Service, small_disk: Path
):
    service.config["state_dir"] = windows_path(small_disk / "state")
    service.configure()
    await service.wine.seb("service", "start")
    first = service.announce("with space")
    await service.until(lambda: announced(service.receiver.taken, first), "the first event")
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    second = service.announce("without space")
    await service.until(lambda: announced(service.receiver.taken, second), "the event from memory")
    filler.unlink()

    async def recorded() -> bool:
        code, said = await service.wine.run("-I", "-m", "bridge.cli", "events", "--pending")
        return code == 0 and second[:8] in said

    await until(recorded, "the event in the journal", service.wine.log, patience=PATIENCE)
    assert sorted({one["subject"] for one in service.receiver.taken} & {first, second}) == sorted(
        [first, second]
    )
    await service.wine.seb("service", "stop")
