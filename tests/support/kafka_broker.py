"""Kafka for the tests: one broker that all of them share, and clusters whose nodes may be killed.

It is Apache Kafka if Java is available, the broker that SEB_TEST_KAFKA names, or else librdkafka's
in-memory cluster. A test that needs something the broker lacks is skipped, with the reason.
"""

import asyncio
import base64
import contextlib
import json
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.certificates import Certificates
from support.kafka_admin import Admin, KafkaAdmin
from support.kafka_mock import MockCluster
from support.kafka_processes import Processes, kafka_files, shared_node
from support.lacking import lacking
from support.scripts import Unobtainable


@dataclass(frozen=True)
class Broker:
    """A broker, or a cluster of them, and what tests may ask of it."""

    kind: str  # Apache Kafka, the broker of SEB_TEST_KAFKA, or the in-memory cluster and why it is that
    listeners: Mapping[str, str]
    admin: Admin
    log: Path | None = None
    _certificates: Certificates | None = None

    @property
    def bootstrap(self) -> str:
        """Without TLS or a user, and allowed everything."""
        return self.listeners["PLAINTEXT"]

    def address(self, listener: str) -> str:
        """SASL_PLAINTEXT, SSL, SASL_SSL, or SSL with a bad certificate: EXPIRED, WRONG_HOST."""
        if listener not in self.listeners:
            lacking(f"{self.kind} has no listener {listener}")
        return self.listeners[listener]

    @property
    def certificates(self) -> Certificates:
        if self._certificates is None:
            lacking(f"{self.kind} has no certificates")
        return self._certificates

    def must_be_real(self, why: str) -> None:
        """For what only Apache Kafka shows, such as refusing a topic that is not there."""
        if isinstance(self.admin, MockCluster):
            lacking(f"{self.kind} will not do: {why}")

    async def topic(
        self,
        partitions: int = 1,
        *,
        name: str | None = None,
        replication: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """A new topic, under a name that no other test has."""
        name = name or f"topic-{uuid.uuid4()}"
        await asyncio.to_thread(
            self.admin.create_topic, name, partitions, replication, config or {}
        )
        return name

    async def delete_topic(self, name: str) -> None:
        await asyncio.to_thread(self.admin.delete_topic, name)

    async def add_user(self, name: str, password: str) -> None:
        """For SCRAM; those of `kafka_config.PASSWORDS` are there already, and know PLAIN too."""
        self.address("SASL_PLAINTEXT")
        await asyncio.to_thread(self.admin.add_user, name, password)

    async def allow(self, user: str, topic: str, operation: str = "ALL") -> None:
        """A topic without rules is open to all; one with rules, only to those whom they allow."""
        self.address("SASL_PLAINTEXT")
        await asyncio.to_thread(self.admin.add_rule, topic, user, operation, "ALLOW")

    async def deny(self, user: str, topic: str, operation: str = "ALL") -> None:
        self.address("SASL_PLAINTEXT")
        await asyncio.to_thread(self.admin.add_rule, topic, user, operation, "DENY")


@dataclass(frozen=True)
class Cluster(Broker):
    """A broker whose nodes, 1 to `size`, die and come back."""

    size: int = 1
    nodes: Processes | MockCluster = field(kw_only=True)

    async def kill(self, node: int) -> None:
        """Kill the node, as a power cut would."""
        await asyncio.to_thread(self.nodes.kill, node)

    async def restart(self, node: int) -> None:
        """Until the node answers again."""
        await asyncio.to_thread(self.nodes.restart, node)


def unsecured_token(user: str, lifetime: float = 3600) -> str:
    """A token that the OAUTHBEARER listeners accept unverified; a negative lifetime has expired."""
    now = time.time()
    claims = {"sub": user, "iat": min(now, now + lifetime) - 1, "exp": now + lifetime}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    head, body = (base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    return f"{head}.{body}."


@contextlib.contextmanager
def shared_broker(directory: Path) -> Iterator[Broker]:
    """The one broker of all test processes that name the same folder; the last to leave ends it."""
    named = os.environ.get("SEB_TEST_KAFKA")
    if named:
        yield Broker("the broker of SEB_TEST_KAFKA", {"PLAINTEXT": named}, KafkaAdmin(named))
        return
    try:
        kafka = kafka_files()
    except Unobtainable as error:
        with in_memory(1, str(error)) as cluster:
            yield cluster
        return
    with shared_node(directory, kafka) as state:
        listeners, certificates = state["listeners"], Certificates(Path(state["certificates"]))
        admin = KafkaAdmin(listeners["PLAINTEXT"])
        yield Broker("Apache Kafka", listeners, admin, Path(state["log"]), certificates)


@contextlib.contextmanager
def in_memory(size: int, why: str) -> Iterator[Cluster]:
    mock = MockCluster(size)
    try:
        listeners = {"PLAINTEXT": mock.bootstrap}
        yield Cluster(f"the in-memory cluster ({why})", listeners, mock, size=size, nodes=mock)
    finally:
        mock.close()


@contextlib.asynccontextmanager
async def cluster(directory: Path, size: int) -> AsyncIterator[Cluster]:
    """Nodes for one test, without TLS or users; they end with it."""
    if os.environ.get("SEB_TEST_KAFKA"):
        lacking("the broker of SEB_TEST_KAFKA is not ours to kill: leave the variable out")
    try:
        kafka = await asyncio.to_thread(kafka_files)
    except Unobtainable as error:
        with in_memory(size, str(error)) as stand_in:
            yield stand_in
        return
    place = Path(tempfile.mkdtemp(prefix=f"kafka-{size}-", dir=directory))
    with Processes(place, kafka, size) as nodes:
        await asyncio.to_thread(nodes.start)
        listeners = {"PLAINTEXT": nodes.bootstrap}
        admin = KafkaAdmin(nodes.bootstrap)
        yield Cluster("Apache Kafka", listeners, admin, place, size=size, nodes=nodes)
