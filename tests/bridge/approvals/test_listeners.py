"""Approval sources: acknowledged after the journal, reconnected, never stuck on a bad message."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Literal

import pytest
from support.bridge import group
from support.until import until

import bridge.approvals.listeners
from bridge.approvals.listeners import Listeners
from bridge.common.errors import Unavailable
from bridge.core.state import moment
from bridge.journal.cursors import checkpoints
from bridge.journal.votes import votes
from bridge.plugins import ApprovalPlugin, ApprovalSettings, Delivery


class RadioSettings(ApprovalSettings):
    station: ClassVar[Any] = None

    type: Literal["radio"] = "radio"
    trust: Literal["transport", "signed"] = "transport"
    wave: str = "long"


@dataclass
class Radio:
    """A source that really awaits: it delivers what a test puts in, in order, and errors too."""

    air: asyncio.Queue = field(default_factory=asyncio.Queue)
    entered: list[Any] = field(default_factory=list)
    left: int = 0
    acked: list[str] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)
    ack_fails: bool = False

    def say(self, body: Any, number: int, **more: Any) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def ack() -> None:
            if self.ack_fails:
                self.ack_fails = False
                raise ConnectionResetError("gone")
            self.acked.append(f"r/0/{number}")

        self.air.put_nowait(
            Delivery(
                text, ack=ack, position=f"r/0/{number}", checkpoint=("0", str(number + 1)), **more
            )
        )

    @asynccontextmanager
    async def open(self, settings, place, listening):
        self.entered.append(listening)
        if self.refusals:
            raise self.refusals.pop(0)

        async def deliveries() -> AsyncIterator[Delivery]:
            while True:
                item = await self.air.get()
                if isinstance(item, Exception):
                    raise item
                if item is None:
                    return
                yield item

        try:
            yield deliveries()
        finally:
            self.left += 1


@pytest.fixture
def radio(monkeypatch):
    made = Radio()
    plugin = ApprovalPlugin(RadioSettings, made.open)
    monkeypatch.setattr(bridge.approvals.listeners, "find_approvals", lambda kind: plugin)
    monkeypatch.setattr(bridge.approvals.listeners, "LONGEST_BACKOFF", 0.02)
    return made


@pytest.fixture
async def voting(tmp_path):
    async with group(tmp_path) as made:
        made.world.create(name="e", type="Reboot", notice="1h")
        yield await made.bridge(dry_run=True)


@asynccontextmanager
async def listening(voting, **sources):
    async with asyncio.TaskGroup() as tasks:
        listeners = Listeners(voting.runtime, voting.intake)
        await listeners.configure(sources or {"bus": RadioSettings()}, tasks)
        try:
            yield partial(listeners.configure, group=tasks)
        finally:
            await listeners.stop()


def event_id(voting) -> str:
    [key] = voting.poller._state.tracked
    return key


async def test_a_message_is_acknowledged_only_after_it_is_in_the_journal(voting, radio):
    known = []
    real = voting.intake.take_some

    async def watched(deliveries, via, **more):
        before = list(radio.acked)
        taken = await real(deliveries, via, **more)
        key = event_id(voting)
        known.append((before, radio.acked[:], await voting.journal.run(lambda s: votes(s, key, 1))))
        return taken

    voting.service.intake = type("Watched", (), {"take_some": staticmethod(watched)})()
    async with listening(voting):
        radio.say({"eventId": event_id(voting)}, 0)
        await until(lambda: radio.acked)
    [(before, at_return, cast)] = known
    assert before == at_return == []
    assert len(cast) == 1
    assert radio.acked == ["r/0/0"]


async def test_what_has_arrived_is_recorded_together_and_acknowledged_in_order(voting, radio):
    real, sizes = voting.intake.take_some, []

    async def watched(deliveries, via, **more):
        sizes.append(len(deliveries))
        return await real(deliveries, via, **more)

    voting.service.intake = type("Watched", (), {"take_some": staticmethod(watched)})()
    for number in range(40):
        radio.say(b"poison" if number % 7 == 0 else {"eventId": event_id(voting)}, number)
    async with listening(voting):
        await until(lambda: len(radio.acked) == 40)
    assert sizes[0] > 1
    assert sum(sizes) == 40
    assert radio.acked == [f"r/0/{number}" for number in range(40)]


@pytest.mark.parametrize("by", ["message", "sign of life"])
async def test_a_source_is_read_again_when_the_journal_was_replaced(voting, radio, by):
    """The votes and the position in it are gone, and a hold that is in the log must count again."""
    key = event_id(voting)
    async with listening(voting):
        radio.say({"eventId": key, "decision": "hold"}, 0)
        await until(lambda: radio.acked)
        await voting.journal.claim("another-vm")
        await voting.journal.claim("this-vm")
        await voting.poll()
        if by == "message":
            radio.say({"eventId": key}, 1)
        else:
            with pytest.raises(Unavailable):
                radio.entered[0].heard(0)
            radio.air.put_nowait(Unavailable("as said"))
        await until(lambda: len(radio.entered) == 2)
        assert radio.entered[1].checkpoints == {}
        assert radio.acked == ["r/0/0"]
        assert await voting.journal.run(lambda store: votes(store, key, 1)) == []
        radio.say({"eventId": key, "decision": "hold"}, 0)
        await until(lambda: len(radio.acked) == 2)
        [again] = await voting.journal.run(lambda store: votes(store, key, 1))
    assert again.decision == "hold"


async def test_a_lost_source_is_reconnected_where_it_left_off(voting, radio):
    radio.refusals = [Unavailable("no carrier"), Unavailable("no carrier")]
    async with listening(voting):
        radio.say({"eventId": event_id(voting)}, 0)
        radio.air.put_nowait(Unavailable("the mast fell"))
        radio.say({"eventId": event_id(voting), "decision": "hold"}, 1)
        await until(lambda: len(radio.acked) == 2)
        status = voting.runtime.status.listeners["bus"]
        assert (status.state, status.error, status.received) == ("connected", None, 2)
    assert [dict(each.checkpoints) for each in radio.entered] == [{}, {}, {}, {"0": "1"}]
    assert radio.left == 2
    assert voting.runtime.status.listeners == {}


async def test_a_failing_source_is_reported(voting, radio):
    radio.refusals = [Unavailable("no carrier")] * 1000
    async with listening(voting):
        status = voting.runtime.status.listeners["bus"]
        await until(lambda: status.state == "unavailable")
        assert status.error == "no carrier"
        radio.refusals = []
        await until(lambda: status.state == "connected")
        radio.entered[-1].heard(7)
        assert (status.lag, status.error) == (7, None)
        radio.air.put_nowait(None)
        await until(lambda: len(radio.entered) > 2)


async def test_poison_never_loops(voting, radio):
    poison = [b"\xff", b"[" * 60000, b"{}", b"x" * 70000, b'{"eventId": "\\ud800"}', b""]
    async with listening(voting):
        for number, body in enumerate(poison):
            radio.say(body, number)
        radio.say({"eventId": event_id(voting)}, len(poison))
        await until(lambda: len(radio.acked) == len(poison) + 1)
    assert len(radio.entered) == 1
    assert voting.runtime.status.approvals["refused", "malformed"] == len(poison)
    found = await voting.journal.run(lambda store: checkpoints(store, "bus"))
    assert found == {"0": str(len(poison) + 1)}


async def test_an_acknowledgment_that_fails_repeats_the_message_and_nothing_else(voting, radio):
    radio.ack_fails = True
    async with listening(voting):
        radio.say({"eventId": event_id(voting)}, 0)
        await until(lambda: len(radio.entered) == 2)
        radio.say({"eventId": event_id(voting)}, 0)
        await until(lambda: radio.acked)
    assert len(radio.entered) == 2
    assert await voting.became() == [("recorded", None)]
    assert voting.runtime.status.approvals["dropped", "duplicate"] == 1


async def test_nothing_is_acknowledged_while_the_journal_cannot_be_written(voting, radio):
    async with listening(voting):
        await until(lambda: radio.entered)
        voting.journal._store.connection.execute("PRAGMA query_only = ON")
        radio.say({"eventId": event_id(voting)}, 0)
        status = voting.runtime.status.listeners["bus"]
        await until(lambda: status.state == "unavailable")
        assert "cannot be written" in status.error
        assert radio.acked == []
        entered = len(radio.entered)
        await asyncio.sleep(0.1)
        assert len(radio.entered) == entered, "it would begin at the wrong place"
        assert await voting.journal.repair()
        radio.say({"eventId": event_id(voting)}, 0)
        await until(lambda: radio.acked)


async def test_a_reload_replaces_what_changed_and_keeps_the_rest(voting, radio):
    same, other = RadioSettings(), RadioSettings(wave="short")
    async with listening(voting, kept=same, changed=same, gone=same) as exchange:
        await until(lambda: len(radio.entered) == 3)
        await exchange({"kept": same, "changed": other, "new": same})
        await until(lambda: len(radio.entered) == 5)
        assert radio.left == 2
        assert set(voting.runtime.status.listeners) == {"kept", "changed", "new"}
    assert radio.left == 5


async def test_a_source_reads_back_to_its_last_connection(voting, radio):
    async with listening(voting):
        await until(lambda: radio.entered)
    lookback = voting.runtime.config.approvals.lookback
    long_ago = str(time.time() - 10 * lookback)
    await voting.journal.run(lambda store: store.remember(**{"listened:bus": long_ago}))
    async with listening(voting):
        await until(lambda: len(radio.entered) == 2)
    assert radio.entered[0].lookback == lookback
    assert radio.entered[1].lookback >= 10 * lookback, "what came while it was away is not missed"


async def test_nothing_is_taken_before_the_first_document_of_this_process(voting, radio):
    answered = voting.runtime.status.source.answered = asyncio.Event()
    async with listening(voting):
        radio.say({"eventId": event_id(voting)}, 0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert voting.runtime.status.listeners["bus"].state == "starting"
        assert radio.acked == []
        answered.set()
        await until(lambda: radio.acked == ["r/0/0"])


async def test_a_listener_can_be_stopped_while_it_waits_for_azure_and_the_next_reads_the_votes(
    voting, radio
):
    answered = voting.runtime.status.source.answered = asyncio.Event()
    radio.say({"eventId": event_id(voting)}, 0)
    async with listening(voting):
        await asyncio.sleep(0)
    assert radio.acked == []
    answered.set()
    async with listening(voting):
        await until(lambda: radio.acked == ["r/0/0"])


async def test_a_source_that_asks_for_minutes_is_entered_sooner_when_an_event_is_near(
    tmp_path, radio
):
    async with group(tmp_path) as made:
        made.world.create(name="far", type="Reboot", notice="1h")
        voting = await made.bridge()
        await near(made, voting, radio)


async def near(made, voting, radio):
    radio.refusals.append(Unavailable("another client took over", retry_after=300))
    async with listening(voting):
        await until(lambda: voting.runtime.status.listeners["bus"].state == "unavailable")
        await asyncio.sleep(0.2)
        assert len(radio.entered) == 1
        made.world.create(name="near", type="Preempt", notice="6s")
        await voting.poll()
        await until(lambda: len(radio.entered) == 2, patience=20)
        assert voting.runtime.status.listeners["bus"].error is None


# --- since when a source was away ----------------------------------------------------------------


async def noted(voting) -> datetime | None:
    return moment(await voting.journal.run(lambda store: store.recall("heard:bus")))


async def test_a_source_learns_when_it_was_last_connected(voting, radio):
    """Also after a kill: the journal is told while the source is connected, and at its end."""
    async with listening(voting):
        await until(lambda: radio.entered)
        radio.air.put_nowait(Unavailable("the mast fell"))
        await until(lambda: len(radio.entered) == 2)
    first, second = (one.connected for one in radio.entered)
    assert first is None
    ended = await noted(voting)
    assert second is not None
    assert ended is not None
    assert second <= ended <= voting.clock.now()


async def test_while_a_source_is_connected_the_journal_is_told_again_and_again(
    voting, radio, monkeypatch
):
    monkeypatch.setattr(bridge.approvals.listeners, "NOTE", 0.01)
    async with listening(voting):
        await until(lambda: radio.entered)
        times = set()

        async def noted_thrice() -> bool:
            radio.entered[0].heard(None)
            times.add(await noted(voting))
            return len(times - {None}) >= 3

        while not await noted_thrice():
            await asyncio.sleep(0.01)


async def test_a_silent_source_was_connected_when_it_was_last_heard(voting, radio):
    async with listening(voting):
        await until(lambda: radio.entered)
        before = voting.clock.now()
        voting.clock.ahead += timedelta(minutes=1)
    ended = await noted(voting)
    assert ended is not None
    assert ended <= before + timedelta(seconds=1)


async def test_without_a_note_the_start_of_the_last_connection_counts(voting, radio):
    """The release before noted only that."""
    began = datetime.now(UTC) - timedelta(hours=1)
    mark = {"listened:bus": str(began.timestamp())}
    await voting.journal.run(lambda store: store.remember(**mark))
    async with listening(voting):
        await until(lambda: radio.entered)
    assert radio.entered[0].connected == began
