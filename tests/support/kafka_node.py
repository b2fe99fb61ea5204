"""One Apache Kafka node in its own process group: started, killed and started again."""

import base64
import contextlib
import shutil
import subprocess
import time
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from support import lifeline
from support.kafka_config import NodeConfig

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
START = 60.0


class StartFailed(Exception):
    """A node was not ready in time; its log says why."""


class Ended(StartFailed):
    """A node ended before it was ready, for example because its port is taken."""


class Node:
    """`lock` is the file whose lock must be held for as long as the node runs."""

    def __init__(self, config: NodeConfig, kafka: Path, directory: Path, lock: Path) -> None:
        self.config = config
        self.log = directory / "kafka.log"
        self.address = f"{config.host}:{config.ports['PLAINTEXT']}"
        self._properties = directory / "server.properties"
        self._kafka = kafka
        self._lock = lock
        self.process: subprocess.Popen[bytes] | None = None
        self._format()

    def _format(self) -> None:
        """Do what Kafka's StorageTool does, but faster: only the ids differ from node to node."""
        self.config.data.mkdir(parents=True)
        ids = {"node.id": self.config.node, "cluster.id": CLUSTER, "directory.id": _kafka_uuid()}
        lines = [f"{key}={value}\n" for key, value in ids.items()]
        (self.config.data / "meta.properties").write_text("version=1\n" + "".join(lines))
        shutil.copy(self._kafka / "bootstrap.checkpoint", self.config.data)
        self._properties.write_text(self.config.text())

    def start(self) -> None:
        java = ["java", f"@{self._kafka / 'java.args'}", "kafka.Kafka", str(self._properties)]
        self.process = lifeline.start(self._lock, self.log, *java, cwd=self._properties.parent)

    def wait_until_ready(self, peers: Collection[int]) -> None:
        """Until the node answers, and knows itself and its peers."""
        client = AdminClient(quiet({"bootstrap.servers": self.address}))
        deadline = time.monotonic() + START
        while not set(peers) <= _brokers(client):
            if self.process is not None and self.process.poll() is not None:
                raise Ended(f"Kafka ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise StartFailed(f"Kafka was not ready after {START:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it, as a power cut would. Does nothing if it is dead."""
        if self.process is not None:
            lifeline.kill(self.process)

    def tail(self, lines: int = 30) -> str:
        return lifeline.tail(self.log, lines)


def quiet(settings: dict[str, str]) -> dict[str, Any]:
    """A client that does not write to standard error, and reconnects quickly."""
    return {
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        "log.connection.close": False,
    } | settings


def _kafka_uuid() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "A")


def _brokers(client: AdminClient) -> set[int]:
    with contextlib.suppress(KafkaException):
        return set(client.list_topics(timeout=1).brokers)
    return set()
