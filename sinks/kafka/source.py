"""Approvals from a Kafka topic: the keys, and the records as deliveries, one by one."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

from aiokafka import TopicPartition
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)
from pydantic import Field, field_validator

from bridge.plugins import (
    ApprovalSettings,
    Delivery,
    Listening,
    Place,
    SinkSettings,
    Unavailable,
    marks_cloudevent,
)
from sinks.kafka.connection import Connector, log_in
from sinks.kafka.consumer import Progress, Unreadable, fetching, find_unreadable
from sinks.kafka.errors import refusal
from sinks.kafka.settings import (
    ANYWHERE,
    Connection,
    KafkaSettings,
    Topics,
    fill_topic,
    validate_topic,
)
from sinks.kafka.subscription import PATIENCE, Subscription

log = logging.getLogger(__name__)

PROBE = 10.0
"""How often to ask the brokers for a sign of life, in seconds."""
STUCK = 30.0
"""How long records may wait in the topic without arriving, in seconds."""
_began: dict[tuple[str, str], float] = {}
"""When this process first read a topic: the lookback of partitions without an offset."""
UNREADABLE = (CorruptRecordException, UnsupportedCodecError)
TOMBSTONE = "tombstone"
"""Why a record without a value is not read: it deletes a key, and says nothing else."""
_LATEST = 250_000_000_000_000


class KafkaApprovals(Connection, ApprovalSettings):
    """Which topic approvals come from. Every bridge reads all of its records."""

    SHARED: ClassVar[tuple[str, ...]] = tuple(Connection.model_fields)
    PROVES: ClassVar[bool] = False

    type: Literal["kafka"]
    topic: str = Field(description="{vm_name}, {location}, … are filled in")

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        return validate_topic(Place.validate(topic))

    def describe(self) -> str:
        servers = ", ".join(self.bootstrap_servers)
        return f"come from Kafka topic {self.topic} at {servers} {self.describe_security()}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """Compares names only: two lists of brokers may belong to one cluster."""
        if not isinstance(sink, KafkaSettings):
            return False
        written = Topics.fill(sink.topic, ANYWHERE).names
        if sink.state_topic is not None:
            written.append(fill_topic(sink.state_topic, ANYWHERE))
        return _topic(self, ANYWHERE) in written


@asynccontextmanager
async def listen(
    settings: KafkaApprovals, place: Place, listening: Listening
) -> AsyncGenerator[AsyncIterator[Delivery]]:
    """Connected when entered. Raises `Unavailable` when it cannot connect."""
    connector = Connector(
        servers=settings.servers,
        client_id=settings.name_client(replace(place, sink=listening.name), "approvals"),
        patience=PATIENCE,
        login=log_in(settings),
    )
    topic = _topic(settings, place)
    subscription = Subscription(
        settings=settings,
        topic=topic,
        connector=connector,
        since=_began.setdefault((listening.name, topic), time.time()) - listening.lookback,
        checkpoints=listening.checkpoints,
    )
    try:
        await subscription.start()
        async with aclosing(Reader(subscription, listening).deliveries()) as deliveries:
            yield deliveries
    finally:
        await subscription.stop()


def _topic(settings: KafkaApprovals, place: Place) -> str:
    return Topics.fill(settings.topic, place).names[0]


@dataclass
class Reader:
    """Reads one record at a time, so that an unreadable one affects no other."""

    subscription: Subscription
    listening: Listening
    _waiting_since: float | None = None
    _logged: set[str] = field(default_factory=set)

    async def deliveries(self) -> AsyncGenerator[Delivery]:
        """Never ends. Raises `Unavailable` when the brokers are gone or refuse us."""
        pause = 0.0
        while True:
            probe = asyncio.create_task(self._probe(pause))
            try:
                while not probe.done():
                    delivery = await self._one(probe)
                    if delivery is not None:
                        yield delivery
            finally:
                await _end(probe)
            probe.result()
            await self.subscription.renew()
            pause = PROBE

    async def _one(self, probe: "asyncio.Task[None]") -> Delivery | None:
        """The next delivery; None when *probe* ended first, or an offset had to be reset."""
        consumer = self.subscription.consumer
        got: asyncio.Future[Any] | None = _at_once(consumer.getone())
        if got is None:
            got = await self._wait(asyncio.create_task(consumer.getone()), probe)
        if got.cancelled():
            return None
        self._waiting_since = None
        problem = got.exception()
        return self._read(got.result()) if problem is None else await self._recover(problem)

    async def _wait(
        self, getting: "asyncio.Task[Any]", probe: "asyncio.Task[None]"
    ) -> "asyncio.Task[Any]":
        """The same task, which is done; it was canceled when *probe* ended first."""
        fetcher = fetching(self.subscription.consumer)
        self._waiting_since = self._waiting_since or time.monotonic()
        try:
            await asyncio.wait({getting, probe, fetcher}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(getting)
        if getting.cancelled() and fetcher.done():
            raise Unavailable("the consumer broke and starts again")
        return getting

    def _read(self, record: Any) -> Delivery:
        headers = [(name, value or b"") for name, value in record.headers]
        of, timestamp = TopicPartition(record.topic, record.partition), record.timestamp
        known = timestamp if timestamp is not None and timestamp >= 0 else None
        delivery = self._delivery(of, record.offset, Progress(record.offset + 1, known))
        empty = record.value is None and not any(marks_cloudevent(name) for name, _ in headers)
        return replace(
            delivery,
            body=record.value or b"",
            headers=headers,
            recorded=_moment(known),
            unread=TOMBSTONE if empty else None,
        )

    def _delivery(self, of: TopicPartition, offset: int, progress: Progress) -> Delivery:
        self.subscription.read[of.partition] = progress
        place = f"{of.topic}/{of.partition}"
        log_of = f"{self.subscription.cluster}/{place}"
        return Delivery(
            body=b"",
            position=f"{place}/{offset}",
            checkpoint=(log_of, str(progress)),
            log=f"{self.listening.name}@{log_of}",
        )

    async def _recover(self, problem: BaseException) -> Delivery | None:
        """Reset an offset that is gone, skip what cannot be decoded, give up on anything else."""
        if isinstance(problem, OffsetOutOfRangeError):
            ((of, offset),) = problem.args[0].items()
            await self.subscription.bounded(self.subscription.reset_offset(of, offset))
            return None
        return await self._skip(problem)

    async def _skip(self, problem: BaseException) -> Delivery:
        """Skip a batch that cannot be decoded. Its empty delivery is counted as malformed."""
        if isinstance(problem, KafkaError) and not isinstance(problem, UNREADABLE):
            raise refusal(problem, self.subscription.topic)
        found = await self.subscription.bounded(find_unreadable(self.subscription.consumer))
        if found is None:
            raise refusal(problem, self.subscription.topic)
        self._log_once(found, str(problem) or type(problem).__name__)
        self.subscription.consumer.seek(found.partition, found.following)
        return self._delivery(found.partition, found.offset, Progress(found.following))

    def _log_once(self, found: Unreadable, why: str) -> None:
        """Once for each reason: anyone who may write the topic could fill the log otherwise."""
        if why in self._logged:
            return
        self._logged.add(why)
        where = {"topic": found.partition.topic, "partition": found.partition.partition}
        what = {"offset": found.offset, "source": self.listening.name, "error": why}
        log.warning("approvals.unreadable", extra={**where, **what})

    async def _probe(self, pause: float) -> None:
        await asyncio.sleep(pause)
        await self.subscription.bounded(self._ask())

    async def _ask(self) -> None:
        """Report the lag. Records that wait and do not arrive are a failure too."""
        lag = await self.subscription.lag()
        since = self._waiting_since
        if lag and since is not None and time.monotonic() - since > STUCK:
            raise Unavailable(
                f"{lag} records wait in topic {self.subscription.topic} and do not arrive"
            )
        if await self.subscription.replaced():
            raise Unavailable(f"topic {self.subscription.topic} was created again; it is read anew")
        self.listening.heard(lag)


def _moment(milliseconds: int | None) -> datetime | None:
    """A record's timestamp; None for one that no clock shows, as producers may set any."""
    if milliseconds is None or milliseconds > _LATEST:
        return None
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def _at_once(getting: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any] | None":
    """What a coroutine returns or raises if it need not wait; None if it must, and it is ended.

    Records come in batches, and a task for each record would cost more than its vote.
    """
    got = asyncio.get_running_loop().create_future()
    try:
        getting.send(None)
    except StopIteration as done:
        got.set_result(done.value)
        return got
    except Exception as error:  # noqa: BLE001  a named border: codecs have exceptions of their own
        got.set_exception(error)
        return got
    getting.close()
    return None


async def _end(task: "asyncio.Task[Any]") -> None:
    """Cancel the task and wait for its end; ignore what it raises."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
