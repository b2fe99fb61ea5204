"""The outbox against a model that fits on one page: nothing is lost or duplicated."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.journal_tools import about, everything, forbid_writing, offered, recorded, tracking
from support.world import NOON

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import Ended
from bridge.journal import Journal, Settlement
from bridge.journal.cursors import dead_letters, replay_letter
from bridge.journal.store import Store

KEEP = 100.0
PLENTY = 1 << 40

keys = st.sampled_from("ABC")
sinks = st.sampled_from(["left", "right", "third"])
configurations = st.sets(sinks, min_size=1)
outcomes = st.sampled_from(["delivered", "dead", "filtered", None])


class Outbox(RuleBasedStateMachine):
    """The real journal, with a model of what must be true."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.journal = Journal(self.folder / "journal.db")
        self.now = 1000.0
        self.rows: dict[str, tuple[str, float]] = {}
        self.count: dict[str, int] = {}
        self.pending: set[str] = set()
        self.configured: set[str] = set()
        self.waiting: dict[str, list[str]] = {}
        self.absent: dict[str, float] = {}
        self.do(self.journal.open())
        self.configure({"left"})

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        self.do(self.journal.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    @property
    def troubled(self) -> bool:
        return self.journal.trouble is not None

    def note(self, event: CloudEvent) -> None:
        if event.id not in self.rows:
            self.rows[event.id] = (event.key, self.now)
            for waiting in self.waiting.values():
                waiting.append(event.id)

    def next(self, key: str) -> CloudEvent:
        self.count[key] = self.count.get(key, 0) + 1
        return about(key, self.count[key])

    @rule(chosen=st.sets(keys, min_size=1), over=st.sets(keys))
    def commit(self, chosen: set[str], over: set[str]) -> None:
        events = [self.next(key) for key in sorted(chosen)]
        self.pending = (self.pending | chosen) - over
        ended = {key: Ended(1, NOON) for key in set(self.count) - self.pending}
        state = replace(tracking(*self.pending), ended=ended)
        self.do(self.journal.commit(state, events, self.now))
        for event in events:
            self.note(event)

    @precondition(lambda self: not self.troubled)
    @rule(key=keys)
    def say_again(self, key: str) -> None:
        """The same id is the same row, unless that row was deleted.

        The stand-in does not know what all sinks have settled: said again, that comes again.
        """
        if self.count.get(key):
            event = about(key, self.count[key])
            self.do(self.journal.append([event], self.now))
            self.note(event)

    @rule(sink=sinks, limit=st.integers(1, 4), blocked=st.sets(keys, max_size=1), how=outcomes)
    def deliver(self, sink: str, limit: int, blocked: set[str], how: str | None) -> None:
        if sink not in self.configured:
            return
        offer = self.do(
            self.journal.run(lambda store: store.unsettled(sink, limit, frozenset(blocked)))
        )
        expected: dict[str, str] = {}
        for name in self.waiting[sink]:
            expected.setdefault(self.rows[name][0], name)
        allowed = [name for key, name in expected.items() if key not in blocked]
        offered = [row.event.id for row in offer]
        assert offered == allowed[:limit]
        self.do(self.journal.settle(sink, [Settlement(n, how, "why") for n in offered], self.now))
        if how is not None:
            self.waiting[sink] = [n for n in self.waiting[sink] if n not in offered]

    @precondition(lambda self: not self.troubled)
    @rule(sink=sinks)
    def replay(self, sink: str) -> None:
        letters = self.do(self.journal.run(lambda store: dead_letters(store, sink)))
        if letters:
            self.do(self.journal.run(lambda store: replay_letter(store.connection, letters[0])))
            order = list(self.rows)
            replayed = [*self.waiting[sink], letters[0].event_id]
            self.waiting[sink] = sorted(replayed, key=order.index)

    @rule(chosen=configurations)
    def configure(self, chosen: set[str]) -> None:
        self.do(self.journal.register(sorted(chosen), self.now))
        for sink in chosen - set(self.waiting):
            latest = {key: name for name, (key, _) in self.rows.items() if key in self.pending}
            self.waiting[sink] = [name for name in self.rows if name in latest.values()]
        for sink in set(self.waiting) - chosen:
            self.absent.setdefault(sink, self.now)
        self.absent = {sink: at for sink, at in self.absent.items() if sink not in chosen}
        self.configured = set(chosen)

    @rule(seconds=st.floats(1, 80))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: not self.troubled)
    @rule()
    def trim(self) -> None:
        before = self.now - KEEP
        wanted = {name for sink in self.configured for name in self.waiting[sink]}
        gone = {n for n, (_, at) in self.rows.items() if at < before and n not in wanted}
        trimmed = self.do(
            self.journal.trim(now=self.now, keep=KEEP, max_size=PLENTY, best_effort=[])
        )
        assert (trimmed.removed, trimmed.lost) == (len(gone), {})
        self.rows = {name: row for name, row in self.rows.items() if name not in gone}
        for sink in [sink for sink, at in self.absent.items() if at < before]:
            del self.absent[sink], self.waiting[sink]
        for sink, waiting in self.waiting.items():
            self.waiting[sink] = [name for name in waiting if name not in gone]

    @rule()
    def crash(self) -> None:
        """The process dies in the middle of a transaction, and another one starts."""
        if self.troubled:
            self.do(self.journal.repair())

        def die(store: Store) -> None:
            store.connection.execute("BEGIN IMMEDIATE")
            store.connection.execute("DELETE FROM outbox")
            store.connection.execute("DELETE FROM sink")

        self.do(self.journal.run(die))
        self.do(self.journal.close())
        self.journal = Journal(self.folder / "journal.db")
        self.do(self.journal.open())
        self.configure(self.configured)

    @precondition(lambda self: not self.troubled)
    @rule()
    def lose_the_disk(self) -> None:
        self.do(forbid_writing(self.journal))
        self.do(self.journal.append([], self.now))
        assert self.troubled

    @precondition(lambda self: self.troubled)
    @rule()
    def repair(self) -> None:
        assert self.do(self.journal.repair())

    @invariant()
    def each_sink_has_what_it_should_still_get(self) -> None:
        for sink in self.configured:
            left = self.do(self.journal.run(partial(everything, sink=sink)))
            assert left == self.waiting[sink]

    @invariant()
    def each_sink_may_get_the_oldest_of_each_key_next(self) -> None:
        for sink, waiting in self.waiting.items():
            oldest: dict[str, str] = {}
            for name in waiting:
                oldest.setdefault(self.rows[name][0], name)
            assert self.do(self.journal.run(partial(offered, sink=sink))) == list(oldest.values())

    @precondition(lambda self: not self.troubled)
    @invariant()
    def nothing_else_is_kept_and_nothing_is_gone(self) -> None:
        assert self.do(self.journal.run(recorded)) == list(self.rows)
        assert set(self.do(self.journal.load()).tracked) == self.pending

    @invariant()
    def what_is_cached_is_what_the_journal_has(self) -> None:
        cached = self.do(self.journal.run(lambda store: store.cached(Store.load)))
        assert cached == self.do(self.journal.load())


Outbox.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
)
TestOutbox = Outbox.TestCase
