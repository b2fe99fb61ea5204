"""Records as deliveries, one after the other, and a watch on whether more can come."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from bridge.plugins import Delivery, Listening, Unavailable
from sinks.kafka.consumer import after_unreadable, fetching
from sinks.kafka.errors import refusal
from sinks.kafka.subscription import Seat

log = logging.getLogger(__name__)

PROBE = 10.0
"""How often the brokers are asked whether they are still there: their silence is not health."""
STUCK = 30.0
"""How long nothing may come while something waits."""


@dataclass
class Reader:
    """Reads one record at a time, so that one that cannot be read costs no other."""

    seat: Seat
    listening: Listening
    _waiting_since: float | None = None
    _told: set[str] = field(default_factory=set)

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
            await self.seat.renew()
            pause = PROBE

    async def _one(self, probe: "asyncio.Task[None]") -> Delivery | None:
        """The next delivery; None when *probe* ended first, or a place had to be found anew."""
        getting = asyncio.create_task(self.seat.consumer.getone())
        fetcher = fetching(self.seat.consumer)
        self._waiting_since = self._waiting_since or time.monotonic()
        try:
            await asyncio.wait({getting, probe, fetcher}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(getting)
        if getting.cancelled():
            if fetcher.done():
                raise Unavailable("the consumer broke, and is started anew")
            return None
        self._waiting_since = None
        problem = getting.exception()
        return self._heard(getting.result()) if problem is None else await self._mend(problem)

    def _heard(self, record: Any) -> Delivery:
        headers = [(name, value or b"") for name, value in record.headers]
        found = TopicPartition(record.topic, record.partition)
        return self._delivery(found, record.offset, record.offset + 1, record.value, headers)

    def _delivery(
        self,
        of: TopicPartition,
        offset: int,
        following: int,
        value: bytes | None = None,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> Delivery:
        self.seat.places[of.partition] = following
        place = f"{of.topic}/{of.partition}"
        shared = self.seat.group is not None
        return Delivery(
            body=value or b"",
            headers=headers or [],
            position=f"{place}/{offset}",
            checkpoint=None if shared else (place, str(following)),
            ack=partial(self._commit, of, following) if shared else None,
        )

    async def _commit(self, of: TopicPartition, following: int) -> None:
        """When the group has changed, another member gets it again: it is in the journal."""

        async def commit() -> None:
            with suppress(CommitFailedError, IllegalStateError):
                await self.seat.consumer.commit({of: following})

        await self.seat.bounded(commit())

    async def _mend(self, problem: BaseException) -> Delivery | None:
        """Find a place where there is none, pass what cannot be read, give up at all else."""
        if isinstance(problem, OffsetOutOfRangeError):
            ((of, offset),) = problem.args[0].items()
            await self.seat.bounded(self.seat.place_anew(of, offset))
            return None
        if isinstance(problem, NoOffsetForPartitionError):
            await self.seat.bounded(self.seat.place_anew(problem.args[0], None))
            return None
        passed = after_unreadable(self.seat.consumer, problem)
        if passed is None:
            raise refusal(problem, self.seat.topic)
        self._say_once("approvals.unreadable", str(problem) or type(problem).__name__)
        self.seat.consumer.seek(passed[0], passed[2])
        return self._delivery(*passed)

    def _say_once(self, event: str, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            log.warning(event, extra={"source": self.listening.name, "error": why})

    async def _probe(self, pause: float) -> None:
        await asyncio.sleep(pause)
        await self.seat.bounded(self._ask())

    async def _ask(self) -> None:
        """Tell the lag; what waits and does not come is no health either."""
        lag = await self.seat.lag()
        since = self._waiting_since
        if lag and since is not None and time.monotonic() - since > STUCK:
            raise Unavailable(f"{lag} records wait in topic {self.seat.topic}, and do not come")
        self.listening.heard(lag)


async def _end(task: "asyncio.Task[Any]") -> None:
    """Over when this returns; what it raised is for those who ask it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
