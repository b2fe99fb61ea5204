"""Apache Kafka nodes, kept alive by one test or by all test processes of a session."""

import contextlib
import fcntl
import functools
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from support.certificates import Certificates, issue
from support.kafka_admin import KafkaAdmin
from support.kafka_config import PASSWORDS, PLAIN, SECURE, NodeConfig
from support.kafka_node import Ended, Node
from support.lifeline import held
from support.ports import free_ports
from support.scripts import run_script

ATTEMPTS = 3  # another process may take a port between our check and Kafka's start


@functools.cache
def kafka_files() -> Path:
    """Where Apache Kafka is; fetched on demand."""
    return Path(run_script("kafka-libs"))


def make_nodes(
    place: Path, kafka: Path, lock: Path, size: int = 1, certificates: Certificates | None = None
) -> dict[int, Node]:
    names = ("CONTROLLER", *(SECURE if certificates else PLAIN))
    chosen = iter(free_ports(size * len(names)))
    ports = {node: {name: next(chosen) for name in names} for node in range(1, size + 1)}
    voters = {node: mine["CONTROLLER"] for node, mine in ports.items()}
    return {
        node: Node(
            NodeConfig(node, mine, voters, place / f"node-{node}" / "data", certificates),
            kafka,
            place / f"node-{node}",
            lock,
        )
        for node, mine in ports.items()
    }


class Processes:
    """The nodes of one cluster, alive until the context ends or this process does."""

    def __init__(self, place: Path, kafka: Path, size: int) -> None:
        self._lock = place / "users.lock"
        self._place, self._kafka, self._size = place, kafka, size
        self._held = contextlib.ExitStack()
        self.nodes: dict[int, Node] = {}

    def __enter__(self) -> Self:
        self._held.enter_context(held(self._lock, fcntl.LOCK_SH))
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()
        self._held.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    def start(self) -> None:
        self.nodes = start_nodes(self._place, self._kafka, self._lock, self._size)

    def kill(self, node: int) -> None:
        self.nodes[node].kill()

    def restart(self, node: int) -> None:
        self.nodes[node].start()
        self.nodes[node].wait_until_ready({node})


def start_nodes(
    place: Path, kafka: Path, lock: Path, size: int = 1, certificates: Certificates | None = None
) -> dict[int, Node]:
    for attempt in range(1, ATTEMPTS):
        with contextlib.suppress(Ended):
            nodes = make_nodes(place / f"attempt-{attempt}", kafka, lock, size, certificates)
            return _started(nodes)
    return _started(make_nodes(place / f"attempt-{ATTEMPTS}", kafka, lock, size, certificates))


def _started(nodes: dict[int, Node]) -> dict[int, Node]:
    try:
        for node in nodes.values():
            node.start()
        for node in nodes.values():
            node.wait_until_ready(nodes)
    except BaseException:
        for node in nodes.values():
            node.kill()
        raise
    return nodes


@contextlib.contextmanager
def shared_node(directory: Path, kafka: Path) -> Iterator[dict[str, Any]]:
    """The description of the node that all test processes of this folder share."""
    lock = directory / "kafka-users.lock"
    process: subprocess.Popen[bytes] | None = None
    try:
        with contextlib.ExitStack() as using:
            with held(directory / "kafka-start.lock", fcntl.LOCK_EX):
                using.enter_context(held(lock, fcntl.LOCK_SH))
                if not lock.read_text():
                    process = start_shared(directory, kafka, lock)
                state = json.loads(lock.read_text())
            yield state
    finally:
        _let_go(process)


def _let_go(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # another test process still uses it: not ours to wait for


def start_shared(directory: Path, kafka: Path, lock: Path) -> subprocess.Popen[bytes]:
    place = Path(tempfile.mkdtemp(prefix="kafka-", dir=directory))
    certificates = issue(place / "certificates")
    node = start_nodes(place, kafka, lock, 1, certificates)[1]
    admin = KafkaAdmin(node.address)
    for user, password in PASSWORDS.items():
        admin.add_user(user, password)
    listeners = {name: f"127.0.0.1:{port}" for name, port in node.config.ports.items()}
    state = {"listeners": listeners, "certificates": str(certificates.directory)}
    lock.write_text(json.dumps(state | {"log": str(node.log)}))
    assert node.process is not None
    return node.process
