"""Delivers a batch to Kafka: all records together, then one result for each."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from bridge.plugins import (
    CloudEvent,
    Delivered,
    Format,
    Place,
    Rejected,
    Result,
    Send,
    Unavailable,
    open_format,
)
from sinks._limit import batch_limit
from sinks.kafka.binding import Record, encode, encode_as, states
from sinks.kafka.connection import Connector, log_in
from sinks.kafka.errors import TOO_LARGE, Lost, verdict
from sinks.kafka.producer import LARGEST_REQUEST, producing
from sinks.kafka.settings import KafkaSettings, Topics, fill_topic

BREATH = 50
"""After this many records the event loop gets a turn, and the first records go out."""
_ASK_AGAIN = 0.1
_OF_LIMIT = 0.8
"""The share of a batch's time that one request may use."""


@asynccontextmanager
async def open_sink(settings: KafkaSettings, place: Place) -> AsyncGenerator[Send]:
    topics = Topics.fill(settings.topic, place)
    form = open_format(settings) if settings.format else None
    connector = make_connector(settings, place)
    state = fill_topic(settings.state_topic, place) if settings.state_topic else None
    session = OpenSink(settings, topics, connector, batch_limit(settings), form, state)
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
    state_topic: str | None = None
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
        begun: list[list[_Part]] = []
        try:
            await self._begin(batch, begun)
            waiting = [one.future for parts in begun for one in parts if isinstance(one, _Sent)]
            if waiting:
                await asyncio.wait(waiting)
        finally:
            for place, parts in enumerate(begun):
                if all(part.future.done() for part in parts if isinstance(part, _Sent)):
                    results[place] = _together([_settled(part) for part in parts])
        for place, parts in enumerate(begun):
            if isinstance(results[place], Rejected):
                results[place] = _together([await self._alone(part) for part in parts])

    async def _begin(self, batch: Sequence[CloudEvent], begun: list[list["_Part"]]) -> None:
        """Hand the records over; those that cannot be sent get their result immediately."""
        missing: dict[str, Result] = {}
        for place, cloudevent in enumerate(batch):
            if place % BREATH == 0:
                await asyncio.sleep(0)
            parts: list[_Part] = []
            for topic, record in self._records(cloudevent):
                if topic not in missing:
                    missing[topic] = await self._missing(topic)
                if missing[topic] is not None:
                    parts.append(missing[topic])
                elif isinstance(record, Rejected):
                    parts.append(record)
                else:
                    parts.append(await self._hand_over(topic, record))
            begun.append(parts)

    def _records(self, cloudevent: CloudEvent) -> Iterator[tuple[str, Record | Rejected]]:
        """Its record, or why there is none, and those of the state that it changes."""
        topic = self.topics.of(cloudevent)
        try:
            yield topic, self._encode(cloudevent)
        except Rejected as error:
            yield topic, error
        if self.state_topic is not None:
            for record in states(cloudevent, self.settings.mode):
                yield self.state_topic, record

    def _encode(self, cloudevent: CloudEvent) -> Record:
        if self.form is None:
            return encode(cloudevent, self.settings.mode)
        return encode_as(cloudevent, self.form)

    async def _hand_over(self, topic: str, record: Record) -> "_Part":
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
        return _Sent(topic, record, future)

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

    async def _alone(self, part: "_Part") -> Result:
        """A broker rejects a whole batch because of one record, so send each record alone."""
        settled = _settled(part)
        if not isinstance(part, _Sent) or not isinstance(settled, Rejected):
            return settled
        topic, record, _ = part
        begun = await self._hand_over(topic, record)
        if not isinstance(begun, _Sent):
            return begun
        await asyncio.wait({begun.future})
        if isinstance(begun.future.exception(), TOO_LARGE):
            size = f"the record has about {record.size} bytes"
            return Rejected(f"{size}; topic {topic} accepts fewer (max.message.bytes)")
        return _settled(begun)


class _Sent(NamedTuple):
    """A record that the producer has."""

    topic: str
    record: Record
    future: "asyncio.Future[Any]"


_Part = _Sent | Unavailable | Rejected | Delivered | None
"""A record on its way, or a result."""


def _settled(part: _Part) -> Result:
    if not isinstance(part, _Sent):
        return part
    problem = part.future.exception()
    return verdict(problem, part.topic) if isinstance(problem, Exception) else None


def _together(results: Sequence[Result]) -> Result:
    """The result of a CloudEvent with several records: what must be repeated, else what failed."""
    later = next((one for one in results if isinstance(one, Unavailable)), None)
    return later or next((one for one in results if one is not None), None)


def _heard(future: "asyncio.Future[Any]") -> None:
    """Retrieve its error, so that asyncio does not warn when the sink stopped waiting."""
    if not future.cancelled():
        future.exception()
