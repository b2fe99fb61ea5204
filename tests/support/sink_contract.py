"""What every sink must do: inherit from `SinkContract`, provide a receiver, and run it.

class TestMySink(SinkContract):
    plugin = sink

    @pytest.fixture
    async def peer(self):
        async with my_peer() as peer:
            yield peer
"""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from support.cloudevents import HOSTILE, LARGEST, batch, make

from bridge.plugins import (
    CloudEvent,
    Place,
    Rejected,
    Result,
    SinkPlugin,
    SinkSettings,
    Unavailable,
)
from bridge.plugins.sinks import find_sink

PATIENCE = 10.0
"""How long a test waits; nothing here takes that long when it works."""
HELD_UP = 0.3
"""Seconds by which the event loop may be late. A call that blocks it takes longer each time."""
TRIES = 3
"""A busy machine makes the loop late as well, but not in each of so many tries."""
LOOK = 0.2
TICK = 0.005


class Peer(ABC):
    """The receiver of a sink's CloudEvents in a test: the real transport with a fake behind it."""

    settings: SinkSettings
    place: Place = Place()

    @abstractmethod
    async def received(self) -> list[dict[str, Any]]:
        """Every CloudEvent that arrived so far, as attributes and data in one object."""

    @abstractmethod
    async def down(self) -> None:
        """Be unreachable, as after a crash of the receiver."""

    @abstractmethod
    async def up(self) -> None:
        """Be reachable again under the same settings; what arrived before is still there."""

    @abstractmethod
    async def stall(self) -> None:
        """From now on, neither answer nor disconnect."""

    @abstractmethod
    async def release(self) -> None:
        """Continue after `stall`."""

    async def refuse(self, ids: set[str]) -> None:
        """Refuse CloudEvents with these ids for good; not asked of a sink that cannot reject."""
        raise AssertionError(f"{type(self).__name__} must say how to refuse {ids}")


class FailingPeer(Peer):
    """A peer whose `network`, a proxy or the receiver itself, fails on request."""

    network: Any

    async def down(self) -> None:
        await self.network.down()

    async def up(self) -> None:
        await self.network.up()

    async def stall(self) -> None:
        self.network.stall()

    async def release(self) -> None:
        self.network.release()


class SinkContract:
    """The tests. A subclass names its `plugin` and provides the fixture `peer`."""

    plugin: ClassVar[SinkPlugin[Any]]
    cannot_reject: ClassVar[str | None] = None
    """Why this receiver accepts everything; otherwise it must be able to refuse."""
    keeps_a_thread: ClassVar[str | None] = None
    """Why one thread may outlive a canceled send, until the receiver continues."""

    @pytest.fixture
    async def peer(self):
        raise AssertionError(f"{type(self).__name__} must provide the fixture peer")

    def test_it_is_found_by_its_type(self, peer):
        assert find_sink(peer.settings.type) is self.plugin

    def test_its_settings_describe_themselves_and_refuse_unknown_keys(self, peer):
        assert isinstance(peer.settings, self.plugin.settings)
        assert peer.settings.describe().strip()
        assert "\n" not in peer.settings.describe()
        properties = self.plugin.settings.model_json_schema()["properties"]
        assert properties["type"]["const"] == peer.settings.type
        with pytest.raises(ValidationError, match="no_such_key"):
            self.plugin.settings(type=peer.settings.type, no_such_key=1)

    async def test_every_cloudevent_of_a_batch_arrives_as_it_was_sent(self, peer):
        sent = batch(20)
        assert await self.attempt(peer, sent) == [None] * 20
        await arrived(peer, sent)

    async def test_500_in_a_batch_all_arrive(self, peer):
        sent = batch(500)
        assert await self.attempt(peer, sent) == [None] * 500
        await arrived(peer, sent)

    async def test_a_cloudevent_of_64_kib_arrives_whole(self, peer):
        sent = [make(size=LARGEST)]
        assert len(sent[0].body) == LARGEST
        assert await self.attempt(peer, sent) == [None]
        await arrived(peer, sent)

    async def test_hostile_unicode_in_data_arrives_unchanged(self, peer):
        sent = [make(description=HOSTILE, resources=[HOSTILE], extra={HOSTILE: HOSTILE})]
        assert await self.attempt(peer, sent) == [None]
        await arrived(peer, sent)

    async def test_several_batches_of_one_session_arrive_each_key_in_order(self, peer):
        sent = [[make(n, key="A"), make(n, key="B")] for n in range(5)]
        async with asyncio.timeout(PATIENCE), self.plugin.open(peer.settings, peer.place) as send:
            for pair in sent:
                assert list(await send(pair)) == [None, None]
        got = await arrived(peer, [cloudevent for pair in sent for cloudevent in pair])
        for column, key in enumerate("AB"):
            ids = [envelope["id"] for envelope in got if envelope["partitionkey"] == key]
            assert ids == [pair[column].id for pair in sent]

    async def test_a_receiver_that_is_down_is_unavailable_and_says_why(self, peer):
        await peer.down()
        results = await self.attempt(peer, batch(3))
        assert [type(result) for result in results] == [Unavailable] * 3
        assert all(str(result).strip() for result in results)

    async def test_a_receiver_that_goes_down_between_batches_is_unavailable(self, peer):
        first, second = batch(2), batch(2, first=3)
        with contextlib.suppress(Unavailable):
            async with (
                asyncio.timeout(PATIENCE),
                self.plugin.open(peer.settings, peer.place) as send,
            ):
                assert list(await send(first)) == [None, None]
                await arrived(peer, first)
                await peer.down()
                results = await send(second)
                assert [type(result) for result in results] == [Unavailable] * 2

    async def test_it_works_again_once_the_receiver_is_back(self, peer):
        sent = batch(3)
        await peer.down()
        assert None not in await self.attempt(peer, sent)
        await peer.up()
        assert await self.attempt(peer, sent) == [None] * 3
        await arrived(peer, sent)

    async def test_connected_twice_in_a_row_it_loses_nothing(self, peer):
        first, second = batch(3), batch(3, first=4)
        assert await self.attempt(peer, first) == [None] * 3
        assert await self.attempt(peer, second) == [None] * 3
        await arrived(peer, first + second)

    async def test_what_is_refused_is_rejected_and_its_neighbors_are_delivered(self, peer):
        sent = batch(5)
        if self.cannot_reject is not None:
            assert self.cannot_reject.strip()
            assert await self.attempt(peer, sent) == [None] * 5
            return
        await peer.refuse({sent[1].id, sent[4].id})
        results = await self.attempt(peer, sent)
        expected = [None, Rejected, None, None, Rejected]
        assert [result and type(result) for result in results] == expected
        assert all(str(results[place]).strip() for place in (1, 4))
        await arrived(peer, [sent[0], sent[2], sent[3]])

    async def test_its_check_passes_when_the_receiver_is_up_and_raises_when_it_is_not(self, peer):
        if self.plugin.check is None:
            assert None not in await self._down(peer)
            return
        async with asyncio.timeout(PATIENCE):
            assert (await self.plugin.check(peer.settings, peer.place)).strip()
            assert await peer.received() == []
            await peer.down()
            with pytest.raises(Unavailable):
                await self.plugin.check(peer.settings, peer.place)

    async def test_after_leaving_it_nothing_is_left_running(self, peer):
        before = Leftovers.now()
        assert await self.attempt(peer, batch(3)) == [None] * 3
        await before.settled()

    async def test_canceled_at_any_moment_of_a_send_it_leaves_nothing_running(self, peer):
        before = Leftovers.now()
        for turns in range(12):
            await canceled_after(turns, self.attempt(peer, batch(3)))
        await before.settled()
        sent = batch(2, first=4)
        assert await self.attempt(peer, sent) == [None] * 2
        await arrived(peer, sent)

    async def test_canceled_while_the_receiver_stalls_it_leaves_nothing_running(self, peer):
        before = Leftovers.now()
        await peer.stall()
        stuck = asyncio.ensure_future(self.attempt(peer, batch(50, size=LARGEST)))
        await asyncio.wait({stuck}, timeout=0.2)
        await cancel(stuck)
        if self.keeps_a_thread is not None:
            assert len(before.threads()) <= 1
            await peer.release()
        await before.settled()
        await peer.release()

    async def test_canceled_again_and_again_while_stalled_nothing_piles_up(self, peer):
        before = Leftovers.now()
        await peer.stall()
        for _ in range(3):
            stuck = asyncio.ensure_future(self.attempt(peer, batch(50, size=LARGEST)))
            await asyncio.wait({stuck}, timeout=0.1)
            await cancel(stuck)
        assert len(before.threads()) <= (0 if self.keeps_a_thread is None else 1)
        await peer.release()
        await before.settled()
        sent = batch(2, first=60)
        assert await self.attempt(peer, sent) == [None] * 2
        await arrived(peer, sent)

    async def test_canceled_while_entering_it_leaves_nothing_running(self, peer):
        before = Leftovers.now()
        await peer.stall()
        entering = asyncio.ensure_future(self.attempt(peer, []))
        await asyncio.wait({entering}, timeout=0.2)
        await cancel(entering)
        await peer.release()
        for turns in range(12):
            await canceled_after(turns, self.attempt(peer, []))
        await before.settled()

    async def test_a_send_does_not_block_the_event_loop(self, peer):
        async def sent() -> float:
            sending = asyncio.ensure_future(self.attempt(peer, batch(50)))
            lag = await longest_lag(sending, PATIENCE)
            assert sending.result() == [None] * 50
            return lag

        assert await least(sent) < HELD_UP

    async def test_a_receiver_that_stalls_does_not_block_the_event_loop(self, peer):
        async def stalled() -> float:
            await peer.stall()
            try:
                return await longest_lag(self.attempt(peer, batch(50, size=LARGEST)), LOOK)
            finally:
                await peer.release()

        assert await least(stalled) < HELD_UP

    async def attempt(self, peer: Peer, cloudevents: Sequence[CloudEvent]) -> list[Result]:
        """Connect, send once and disconnect, as the bridge does: an exception means all unavailable."""
        try:
            async with (
                asyncio.timeout(PATIENCE),
                self.plugin.open(peer.settings, peer.place) as send,
            ):
                results = list(await send(cloudevents)) if cloudevents else []
        except Unavailable as error:
            return [error] * len(cloudevents)
        assert len(results) == len(cloudevents)
        return results

    async def _down(self, peer: Peer) -> list[Result]:
        await peer.down()
        return await self.attempt(peer, batch(1))


async def arrived(peer: Peer, sent: Sequence[CloudEvent]) -> list[dict[str, Any]]:
    """Wait until all of *sent* is there, equal to what was sent; return all that is there."""
    wanted = {cloudevent.id: cloudevent.envelope for cloudevent in sent}
    got: list[dict[str, Any]] = []

    async def complete() -> bool:
        got[:] = await peer.received()
        return wanted.keys() <= {envelope["id"] for envelope in got}

    await eventually(complete)
    for envelope in got:
        assert envelope == wanted.get(envelope["id"], envelope)
    return got


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(int(PATIENCE / 0.02)):
        if await true():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{true.__qualname__} never came true")


async def longest_lag(work: Awaitable[Any], seconds: float) -> float:
    """The longest delay of the event loop while *work* ran, for at most *seconds*.

    What still runs then is canceled.
    """
    clock = asyncio.get_running_loop().time
    task, end, worst = asyncio.ensure_future(work), clock() + seconds, 0.0
    while not task.done() and clock() < end:
        before = clock()
        await asyncio.sleep(TICK)
        worst = max(worst, clock() - before - TICK)
    await cancel(task)
    return worst


async def least(measure: Callable[[], Awaitable[float]]) -> float:
    """The least of a few measurements; stops at the first that is good enough."""
    found = [await measure()]
    while found[-1] >= HELD_UP and len(found) < TRIES:
        found.append(await measure())
    return min(found)


async def canceled_after(turns: int, work: Awaitable[Any]) -> None:
    """Let *work* run for so many turns of the event loop, then cancel it."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    await cancel(task)


async def cancel(task: "asyncio.Future[Any]") -> None:
    """Cancel, and require that it ends without waiting for the receiver."""
    task.cancel()
    async with asyncio.timeout(PATIENCE / 2):
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()


@dataclass(frozen=True)
class Leftovers:
    """What runs and is open now, to find later what was left behind."""

    tasks: frozenset["asyncio.Task[Any]"]
    known_threads: frozenset[threading.Thread]
    files: frozenset[tuple[str, str]]

    @classmethod
    def now(cls) -> "Leftovers":
        return cls(frozenset(asyncio.all_tasks()), frozenset(_threads()), frozenset(_files()))

    def threads(self) -> set[threading.Thread]:
        return _threads() - self.known_threads

    async def settled(self) -> None:
        """Wait until nothing more than before is left, or fail and name it."""
        for _ in range(int(PATIENCE / 0.02)):
            more = self._more()
            if not more:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"left running or open: {more}")

    def _more(self) -> list[object]:
        return [*(asyncio.all_tasks() - self.tasks), *self.threads(), *(_files() - self.files)]


def _threads() -> set[threading.Thread]:
    """All but the idle workers that the event loop keeps for `asyncio.to_thread`."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


def _files() -> set[tuple[str, str]]:
    """Open descriptors and what they are; empty if the system does not report them.

    A pipe with both ends in this process is how a foreign library (librdkafka, the tests' own
    client) wakes its threads, at any time.
    """
    table = Path("/proc/self/fd")
    found = set()
    for entry in table.iterdir() if table.exists() else ():
        with contextlib.suppress(OSError):
            found.add((entry.name, str(entry.readlink())))
    ends = Counter(what for _, what in found)
    return {
        (name, what) for name, what in found if not (what.startswith("pipe:") and ends[what] > 1)
    }
