"""Real brokers on loopback: Mosquitto, and one node of Apache Kafka."""

import asyncio
import base64
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from bench.processes import PATIENCE, process
from bench.servers.tally import Channel, Tally

_SCRIPTS = Path(__file__).parents[2] / "scripts"
_MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
queue_qos0_messages true
"""
_CLUSTER = "5L6g3nShT-eMCtK--X86sw"
_KAFKA = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{controller},PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=2097152
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
log.dirs={data}
"""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _script(*command: str) -> str:
    done = subprocess.run([_SCRIPTS / command[0], *command[1:]], check=True, capture_output=True)
    return done.stdout.decode().strip()


def _mosquitto_program() -> str:
    usual = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    found = shutil.which("mosquitto", path=usual)
    return found or str(Path(_script("debian-packages", "mosquitto") or "/usr/sbin") / "mosquitto")


@dataclass(frozen=True, slots=True)
class Mosquitto:
    port: int

    @contextlib.asynccontextmanager
    async def channel(self, name: str) -> AsyncGenerator[Channel]:
        """A tree of topics, and a subscriber of its own."""
        tree = f"bench/{name}/{uuid.uuid4().hex[:8]}"
        settings = {
            "type": "mqtt",
            "host": "127.0.0.1",
            "port": self.port,
            "topic": f"{tree}/{{subject}}",
        }
        channel = Channel(settings)
        with self._subscriber(f"{tree}/#", channel.tally):
            yield channel

    @contextlib.contextmanager
    def _subscriber(self, topics: str, tally: Tally) -> Iterator[None]:
        client = Client(CallbackAPIVersion.VERSION2, f"bench-{uuid.uuid4().hex[:12]}")
        subscribed = threading.Event()
        client.on_subscribe = lambda *_: subscribed.set()
        client.on_connect = lambda client, *_: client.subscribe(topics)
        client.on_message = lambda _client, _data, message: tally.took(message.payload)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        subscribed.wait(PATIENCE)
        try:
            yield
        finally:
            client.disconnect()
            client.loop_stop()


@contextlib.asynccontextmanager
async def mosquitto() -> AsyncGenerator[Mosquitto]:
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mosquitto.conf")
        user = "user root\n" if os.geteuid() == 0 else ""
        config.write_text(_MOSQUITTO.format(port=port) + user)
        command = [await asyncio.to_thread(_mosquitto_program), "-c", str(config)]
        async with process(command, Path(folder, "mosquitto.log")) as running:
            while not await _listens(port):
                running.check()
                await asyncio.sleep(0.02)
            yield Mosquitto(port)


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@dataclass(frozen=True, slots=True)
class Kafka:
    address: str

    def create(self, topic: str, partitions: int = 1) -> None:
        admin = _admin(self.address)
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE)

    @contextlib.asynccontextmanager
    async def channel(self, name: str) -> AsyncGenerator[Channel]:
        """A topic, and a consumer of its own."""
        topic = f"bench.{name}.{uuid.uuid4().hex[:8]}"
        await asyncio.to_thread(self.create, topic)
        channel = Channel(
            {
                "type": "kafka",
                "bootstrap_servers": [self.address],
                "topic": topic,
                "mode": "structured",
            }
        )
        ended = threading.Event()
        reader = threading.Thread(target=self._follow, args=(topic, channel.tally, ended))
        reader.start()
        try:
            yield channel
        finally:
            ended.set()
            await asyncio.to_thread(reader.join)

    def _follow(self, topic: str, tally: Tally, ended: threading.Event) -> None:
        settings = {"bootstrap.servers": self.address, "group.id": topic, "fetch.wait.max.ms": 1000}
        consumer = Consumer(_quiet(settings))
        consumer.assign([TopicPartition(topic, 0, 0)])
        while not ended.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                tally.took(message.value() or b"")
        consumer.close()


def _quiet(settings: dict[str, Any]) -> dict[str, Any]:
    return {"log_level": 0, "log.connection.close": False} | settings


def _admin(address: str) -> AdminClient:
    return AdminClient(_quiet({"bootstrap.servers": address}))


@contextlib.asynccontextmanager
async def kafka() -> AsyncGenerator[Kafka]:
    libraries = Path(await asyncio.to_thread(_script, "kafka-libs"))
    port, controller = _free_port(), _free_port()
    with tempfile.TemporaryDirectory() as folder:
        properties, data = Path(folder, "server.properties"), Path(folder, "data")
        properties.write_text(_KAFKA.format(port=port, controller=controller, data=data))
        _format(data, libraries)
        command = ["java", f"@{libraries / 'java.args'}", "kafka.Kafka", str(properties)]
        async with process(command, Path(folder, "kafka.log")) as running:
            node = Kafka(f"127.0.0.1:{port}")
            while not await asyncio.to_thread(_ready, node):
                running.check()
                await asyncio.sleep(0.1)
            yield node


def _format(data: Path, libraries: Path) -> None:
    """Do what Kafka's StorageTool does, but faster."""
    data.mkdir()
    directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "A")
    ids = {"version": 1, "node.id": 1, "cluster.id": _CLUSTER, "directory.id": directory}
    lines = (f"{key}={value}\n" for key, value in ids.items())
    (data / "meta.properties").write_text("".join(lines))
    shutil.copy(libraries / "bootstrap.checkpoint", data)


def _ready(node: Kafka) -> bool:
    with contextlib.suppress(KafkaException):
        return bool(_admin(node.address).list_topics(timeout=1).brokers)
    return False
