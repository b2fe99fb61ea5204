"""Delivers a batch to Kafka: all records together, then one result for each."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from bridge.plugins import (
    CloudEvent,
    Format,
    Place,
    Rejected,
    Result,
    Send,
    Unavailable,
    open_format,
)
from sinks._limit import batch_limit
from sinks.kafka.binding import Record, encode, encode_as
from sinks.kafka.connection import Connector, log_in
from sinks.kafka.errors import TOO_LARGE, Lost, verdict
from sinks.kafka.producer import LARGEST_REQUEST, producing
from sinks.kafka.settings import KafkaSettings, Topics

BREATH = 50
"""After this many records the event loop gets a turn, and the first records go out."""
_ASK_AGAIN = 0.1
_OF_LIMIT = 0.8
"""The share of a batch's time that one request may use."""
_Sent = tuple[str, Record, "asyncio.Future[Any]"]


@asynccontextmanager
async def open_sink(settings: KafkaSettings, place: Place) -> AsyncGenerator[Send]:
    topics = Topics.fill(settings.topic, place)
    form = open_format(settings) if settings.format else None
    connector = make_connector(settings, place)
    session = OpenSink(settings, topics, connector, batch_limit(settings), form)
    try:
        await session.connect()
        yield session.send
    finally:
        await session.disconnect()


def make_connector(settings: KafkaSettings, place: Place) -> Connector:
    """Raises `Unavailable` when a file with credentials cannot be used."""
    return Connector(
        servers=settings.servers,
        client_id=settings.name_client(place, "sink"),
        patience=batch_limit(settings) * _OF_LIMIT,
        login=log_in(settings),
    )


@dataclass
class OpenSink:
    """A producer, replaced when the credentials change."""

    settings: KafkaSettings
    topics: Topics
    connector: Connector
    limit: float
    """The limit for one batch, and for connecting, in seconds."""
    form: Format | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _producer: Any = None

    async def connect(self) -> None:
        try:
            async with asyncio.timeout(self.limit):
                entering = producing(self.settings, self.connector)
                self._producer = await self._stack.enter_async_context(entering)
        except TimeoutError:
            servers = ", ".join(self.settings.bootstrap_servers)
            raise Unavailable(f"{servers}: not connected within {self.limit:g} s") from None

    async def disconnect(self) -> None:
        await self._stack.aclose()

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        """Raises `Unavailable` when nothing gets through, so that the bridge reconnects."""
        await self._renew()
        results: list[Result] = [Lost(f"no acknowledgment within {self.limit:g} s")] * len(batch)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limit):
                await self._deliver(batch, results)
        lost = [result for result in results if isinstance(result, Lost)]
        if lost and len(lost) == len(results):
            raise Unavailable(str(lost[0]))
        return results

    async def _renew(self) -> None:
        """Rotated files take effect here. Half a rotation does not."""
        try:
            login = log_in(self.settings)
        except Unavailable:
            return
        if login != self.connector.login:
            self.connector = replace(self.connector, login=login)
            await self.disconnect()
            await self.connect()

    async def _deliver(self, batch: Sequence[CloudEvent], results: list[Result]) -> None:
        """Fill in *results*; what is not settled in time stays as it is."""
        sent: dict[int, _Sent] = {}
        try:
            await self._begin(batch, results, sent)
            if sent:
                await asyncio.wait([future for _, _, future in sent.values()])
        finally:
            for place, (topic, _, future) in sent.items():
                if future.done():
                    results[place] = _settled(future, topic)
        for place, (topic, record, _) in sent.items():
            if isinstance(results[place], Rejected):
                results[place] = await self._alone(topic, record)

    async def _begin(
        self, batch: Sequence[CloudEvent], results: list[Result], sent: dict[int, _Sent]
    ) -> None:
        """Hand the records over; those that cannot be sent get their result immediately."""
        missing: dict[str, Result] = {}
        for place, cloudevent in enumerate(batch):
            if place % BREATH == 0:
                await asyncio.sleep(0)
            topic = self.topics.of(cloudevent)
            if topic not in missing:
                missing[topic] = await self._missing(topic)
            if missing[topic] is not None:
                results[place] = missing[topic]
                continue
            try:
                record = self._encode(cloudevent)
            except Rejected as error:
                results[place] = error
                continue
            begun = await self._hand_over(topic, record)
            if isinstance(begun, asyncio.Future):
                sent[place] = (topic, record, begun)
            else:
                results[place] = begun

    def _encode(self, cloudevent: CloudEvent) -> Record:
        if self.form is None:
            return encode(cloudevent, self.settings.mode)
        return encode_as(cloudevent, self.form)

    async def _hand_over(self, topic: str, record: Record) -> "asyncio.Future[Any] | Result":
        try:
            future: asyncio.Future[Any] = await self._producer.send(
                topic, value=record.value, key=record.key, headers=record.headers
            )
        except MessageSizeTooLargeError:
            limit = f"max_request_size allows {LARGEST_REQUEST}"
            return Rejected(f"the record has about {record.size} bytes; {limit}")
        except KafkaError as error:
            return verdict(error, topic)
        future.add_done_callback(_heard)
        return future

    async def _missing(self, topic: str) -> Result:
        """Why the topic cannot be written; None when it exists.

        aiokafka's own lookup reports an unknown topic when the brokers do not answer.
        """
        client = self._producer.client
        if client.cluster.partitions_for_topic(topic):
            return None
        client.add_topic(topic)
        clock = asyncio.get_running_loop().time
        give_up = clock() + self.limit / 2
        while clock() < give_up:
            updated = await client.force_metadata_update()
            if client.cluster.partitions_for_topic(topic):
                return None
            if not updated:
                return verdict(NodeNotReadyError(), topic)
            if topic in client.cluster.unauthorized_topics:
                return verdict(TopicAuthorizationFailedError(), topic)
            await asyncio.sleep(_ASK_AGAIN)
        return verdict(UnknownTopicOrPartitionError(), topic)

    async def _alone(self, topic: str, record: Record) -> Result:
        """A broker rejects a whole batch because of one record, so send each record alone."""
        begun = await self._hand_over(topic, record)
        if not isinstance(begun, asyncio.Future):
            return begun
        await asyncio.wait({begun})
        if isinstance(begun.exception(), TOO_LARGE):
            size = f"the record has about {record.size} bytes"
            return Rejected(f"{size}; topic {topic} accepts fewer (max.message.bytes)")
        return _settled(begun, topic)


def _settled(future: "asyncio.Future[Any]", topic: str) -> Result:
    problem = future.exception()
    return verdict(problem, topic) if isinstance(problem, Exception) else None


def _heard(future: "asyncio.Future[Any]") -> None:
    """Retrieve its error, so that asyncio does not warn when the sink stopped waiting."""
    if not future.cancelled():
        future.exception()
