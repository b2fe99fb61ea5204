"""A bridge's subscription: a consumer with every partition, replaced when files rotate."""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from bridge.plugins import Unavailable
from sinks.kafka.connection import Connector, log_in
from sinks.kafka.consumer import (
    Progress,
    behind,
    cluster_of,
    consuming,
    may_read,
    partitions_of,
    remembered,
    replaced,
    starts,
)
from sinks.kafka.errors import refusal
from sinks.kafka.settings import Connection

log = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE = 8.0
"""The limit for one request, in seconds."""
LIMIT = 10.0
"""For connecting, and for all requests of one round together, in seconds."""


@dataclass
class Subscription:
    """One bridge's subscription to a topic, and how far each partition was read."""

    settings: Connection
    topic: str
    connector: Connector
    since: float
    """In partitions without an offset, older records (by the wall clock) are not read."""
    checkpoints: Mapping[str, str]
    consumer: Any = None
    cluster: str = ""
    """The cluster's id, or else its addresses."""
    read: dict[int, Progress] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Raises `Unavailable` when the broker refuses us, or the topic."""
        try:
            async with asyncio.timeout(LIMIT):
                entering = consuming(self.connector)
                self.consumer = await self._stack.enter_async_context(entering)
                found = await partitions_of(self.consumer, self.topic, LIMIT / 2)
                await may_read(self.consumer, self.topic, found)
                await self._recall()
                await self._assign(found, self.since)
                for of in await self.replaced():
                    await self.reset_offset(of, self.read[of.partition].following)
        except TimeoutError:
            raise Unavailable(f"{self._servers}: not connected within {LIMIT:g} s") from None
        except KafkaError as error:
            raise refusal(error, self.topic) from None

    async def _recall(self) -> None:
        """Continue where this cluster was read; offsets of another one mean nothing here."""
        cluster = await cluster_of(self.consumer, self.topic) or self._servers
        if cluster != self.cluster:
            self.cluster = cluster
            self.read = remembered(self.checkpoints, cluster, self.topic)

    async def stop(self) -> None:
        await self._stack.aclose()

    async def renew(self) -> None:
        """Rotated files and new partitions take effect here; half a rotation does not."""
        try:
            login = log_in(self.settings)
        except Unavailable:
            login = dict(self.connector.login)
        if login != self.connector.login:
            self.connector = replace(self.connector, login=login)
            await self.stop()
            await self.start()
            return
        found = self.consumer.partitions_for_topic(self.topic) or set()
        if found - self.read.keys():
            await self.bounded(self._assign(found, 0.0))

    async def reset_offset(self, of: TopicPartition, offset: int) -> None:
        """Retention deleted the next record, or the topic was created again."""
        first: int = (await self.consumer.beginning_offsets([of]))[of]
        start = first
        if offset >= first:
            start = (await starts(self.consumer, [of], self.since))[of]
        where = {"partition": of.partition, "offset": offset, "now": start}
        log.warning("approvals.offset_missing", extra={"topic": self.topic, **where})
        self.read[of.partition] = Progress(start)
        self.consumer.seek(of, start)

    async def replaced(self) -> list[TopicPartition]:
        """The partitions that are no longer those that we read."""
        read = {TopicPartition(self.topic, number): one for number, one in self.read.items()}
        return await replaced(self.consumer, read)

    async def lag(self) -> int:
        """How many offsets we are behind. Raises unless the brokers answer and the topic exists."""
        await partitions_of(self.consumer, self.topic, 0)
        assigned = list(self.consumer.assignment())
        ends: Mapping[TopicPartition, int] = await self.consumer.end_offsets(assigned)
        return sum(behind(self.consumer, each, end) for each, end in ends.items())

    async def bounded(self, work: Awaitable[T]) -> T:
        """Wait for *work*. Raises `Unavailable` after a timeout or a Kafka error."""
        try:
            async with asyncio.timeout(LIMIT):
                return await work
        except TimeoutError:
            raise Unavailable(f"{self._servers}: no answer within {LIMIT:g} s") from None
        except KafkaError as error:
            raise refusal(error, self.topic) from None

    async def _assign(self, found: Iterable[int], since: float) -> None:
        partitions = [TopicPartition(self.topic, number) for number in sorted(found)]
        new = [each for each in partitions if each.partition not in self.read]
        begin = await starts(self.consumer, new, since)
        self.read |= {each.partition: Progress(offset) for each, offset in begin.items()}
        self.consumer.assign(partitions)
        for each in partitions:
            self.consumer.seek(each, self.read[each.partition].following)

    @property
    def _servers(self) -> str:
        return ", ".join(self.settings.bootstrap_servers)
