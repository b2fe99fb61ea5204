"""Two bridges on two channels under one Azure, with random steps in random order.

Votes reach the bridges at different times, by one channel or both, or only one of the bridges. The
bus moves to another cluster. Events change between a vote and its reading, end and return. Bridges
decide late, reload their rules, restart, get no answer, and wait for a slow poll with a
StartRequest in hand. A VoteLedger models each of them.

The invariant: at the moment of each POST, the policy allows it by the journal as it is then. A
JournalOracle reads the file and decides that on its own.
"""

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from support.ballots import delivery
from support.bridge import Bridge, make_config, make_runtime, reconfigure
from support.clock import StillClock
from support.journal_oracle import JournalOracle
from support.vote_ledger import ALLOW, HARSHER, POLICIES, Said, VoteLedger

from bridge.core.model import Document, Instance, ScheduledEvent
from bridge.journal import Journal
from bridge.metadata.answers import WITHDRAWN, Accepted, Answer, SourceProblem

VMS = ("vm-0", "vm-1")
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(seconds=5)
BROKEN = SourceProblem("server-error", "The metadata service answered 500.", status=500)
GONE = SourceProblem("bad-request", "The metadata service answered 400.", status=400)

EVENTS = st.sampled_from(["A", "B"])
BRIDGES = st.sampled_from(VMS)
WHO = st.sampled_from(["orders", "billing", "stock"])
WHAT = st.sampled_from(["approve", "approve", "approve", "hold", "release"])
WHERE = st.sampled_from(["vm-0", "vm-1", "vm-0", "vm-1", ""])
PROOF = st.sampled_from(["verified", "verified", "verified", "claimed", "pretended"])
CHANNELS = ("bus", "radio")
CHANNEL = st.sampled_from(CHANNELS)
READY = st.permutations([(who, vm) for who in ("orders", "billing") for vm in VMS])
HEARERS = st.sampled_from([VMS, VMS, VMS, VMS[:1], VMS[1:], ()])
CHANGES = st.sampled_from(["harsher", "milder", "earlier", "later", "more", "fewer", "turned"])
POLICY = st.sampled_from(POLICIES)
MEANWHILE = st.sampled_from(["hold", "hear", "poll", "harsher", "dry run", "policy"])


CLOCK = StillClock()
"""The clock of all bridges; it moves when a step takes time."""


class Azure:
    """The real state, and what each VM sees of it."""

    def __init__(self):
        self.events, self.incarnation, self.answers = {}, 0, True

    def change(self, name, event):
        self.events.pop(name, None)
        if event is not None:
            self.events[name] = event
        self.incarnation += 1


class Window:
    """Azure as one VM sees it; ledger and journal must allow everything that is POSTed here."""

    def __init__(self, azure, ledger, rules, journal):
        self.azure, self.ledger, self.configured, self.journal = azure, ledger, rules, journal
        self.tried, self.fresh = {}, False

    async def instance(self):
        return Instance(name=self.ledger.vm, vm_id=self.ledger.vm)

    async def fetch(self):
        if not self.azure.answers:
            return BROKEN
        self.fresh = True
        self.ledger.sees(self.azure.events, CLOCK.moment)
        return Answer(Document(self.azure.incarnation, tuple(self.azure.events.values())))

    async def approve(self, choose, _):
        ids = await choose()
        if not ids:
            return WITHDRAWN
        vm = self.ledger.vm
        assert self.fresh, f"{vm} POSTed {ids} by what it knew before it stopped"
        for name in ids:
            now = JournalOracle.read(self.journal, name)
            assert now.objections(vm, self.configured, CLOCK.moment) == [], f"{vm} POSTed {name}"
            assert self.ledger.allows(name, CLOCK.moment), f"{vm} POSTed {name}"
            assert (name, self.ledger.life(name)) not in self.ledger.granted, f"{name} again"
        return self._answer(ids)

    def _answer(self, ids):
        taken = self.azure.answers and set(ids) <= set(self.azure.events)
        for name in ids:
            self.tried[name] = CLOCK.moment
            if taken:
                self.ledger.is_granted(name)
        if not self.azure.answers:
            return BROKEN
        return Accepted() if taken else GONE

    def prevents(self, name):
        """Whether a POST was impossible: Azure does not answer, or the bridge has no fresh document."""
        just_now = self.tried.get(name, CLOCK.moment - HOUR) > CLOCK.moment - LONGEST_BACKOFF
        return just_now or not self.fresh or not self.azure.answers or name not in self.azure.events


class TwoBridges(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        CLOCK.moment = datetime.now(UTC) + SECOND
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.azure = Azure()
        self.said: dict[str, list[Said]] = {channel: [] for channel in CHANNELS}
        self.bridges, self.windows, self.ledgers, self.read = {}, {}, {}, {}
        self.configured: dict[str, dict[str, Any]] = {}
        self.number, self.cluster = 0, 0

    @initialize(policy=POLICY, listed=st.booleans())
    def open(self, policy, listed):
        for vm in VMS:
            self.configured[vm] = {"require": policy, "allow": ALLOW if listed else []}
            self.ledgers[vm] = VoteLedger(vm, policy, listed)
            file = Path(self.folder.name) / vm / "journal.db"
            self.windows[vm] = Window(self.azure, self.ledgers[vm], self.configured[vm], file)
            self.read[vm] = dict.fromkeys(CHANNELS, 0)
            self.runner.run(self._start(vm))
        self._announce("A", VMS)

    async def _start(self, vm):
        folder = Path(self.folder.name) / vm
        folder.mkdir(exist_ok=True)
        config = make_config(folder, "http://127.0.0.1:9", {}, **self.configured[vm])
        journal = Journal(folder / "journal.db")
        await journal.open()
        await journal.run(lambda store: store.connection.execute("PRAGMA synchronous = OFF"))
        made = Bridge(await make_runtime(config, journal, CLOCK), self.windows[vm])
        made.intake.patience = 0.0
        self.bridges[vm], self.windows[vm].fresh = made, False

    async def _stop(self, vm):
        await self.bridges[vm].journal.close()

    def _announce(self, name, resources):
        event = ScheduledEvent(name, "Reboot", "Scheduled", resources, CLOCK.moment + 2 * HOUR)
        self.azure.change(name, event)
        for vm in VMS:
            self.runner.run(self.bridges[vm].poll())

    # --- what happens at Azure ---------------------------------------------------------------

    @rule(name=EVENTS, resources=st.sampled_from([VMS, VMS[::-1], VMS[:1], (*VMS, "vm-2")]))
    def announce(self, name, resources):
        if name not in self.azure.events:
            self._announce(name, resources)

    @rule(name=EVENTS, how=CHANGES)
    def change(self, name, how):
        event = self.azure.events.get(name)
        if event is None or event.status == "Started":
            return
        place, due = HARSHER.index(event.event_type), event.not_before
        changes = {
            "harsher": {"event_type": HARSHER[min(place + 1, 2)]},
            "milder": {"event_type": HARSHER[max(place - 1, 0)]},
            "earlier": {"not_before": due - SECOND},
            "later": {"not_before": due + SECOND},
            "more": {"resources": tuple(dict.fromkeys([*event.resources, *VMS, "vm-2"]))},
            "fewer": {"resources": event.resources[:-1] or event.resources},
            "turned": {"resources": event.resources[::-1]},
        }
        self.azure.change(name, replace(event, **changes[how]))

    @rule(name=EVENTS, how=st.sampled_from(["not yet", "vanish", "start", "start in time"]))
    def end(self, name, how):
        event = self.azure.events.get(name)
        if how == "not yet":
            return
        if how == "vanish" or event is None or event.status == "Started":
            self.azure.change(name, None)
            return
        if how == "start in time":
            CLOCK.moment = max(CLOCK.moment, event.not_before)
        self.azure.change(name, replace(event, status="Started", not_before=None))

    @rule(answers=st.sampled_from([True, True, False]))
    def answer(self, answers):
        self.azure.answers = answers

    # --- what people say ---------------------------------------------------------------------

    @rule(name=EVENTS, who=WHO, what=WHAT, vm=WHERE, proof=PROOF, channel=CHANNEL, by=HEARERS)
    def say(self, name, who, what, vm, proof, channel, by):
        self.number += 1
        self._tick()
        self.said[channel].append(Said(self.number, name, who, what, vm, proof))
        if channel == "bus":
            self.said[channel][-1] = replace(self.said[channel][-1], recorded=CLOCK.moment)
        for at in by:
            self.hear(at, channel, len(self.said[channel]))

    @rule(name=EVENTS, how=CHANGES, at=BRIDGES, votes=READY)
    def change_before_reading(self, name, how, at, votes):
        """Approvals are on the bus when their event changes, and are read after that."""
        self._begin(name, at)
        for who, vm in votes:
            self.say(name, who, "approve", vm, "verified", "bus", ())
        self.change(name, how)
        self.poll((at,), then=False)
        self.hear(at, "bus", len(self.said["bus"]))
        self.look(at)

    @rule(name=EVENTS, who=WHO, how=CHANGES, at=BRIDGES, votes=READY)
    def change_after_a_hold(self, name, who, how, at, votes):
        """The event changes while somebody holds, and then the others approve."""
        self._begin(name, at)
        self.say(name, who, "hold", "", "verified", "radio", (at,))
        self.change(name, how)
        self.poll((at,), then=True)
        self.agree(name, "radio", (at,), votes, then=True)

    @rule(name=EVENTS, at=BRIDGES, votes=READY)
    def rehearse(self, name, at, votes):
        """All approve in a dry run, which ends after that."""
        self._begin(name, at)
        self._configure(at, dry_run=True)
        self.agree(name, "radio", (at,), votes, then=False)
        self._configure(at, dry_run=False)
        self.look(at)

    @rule(channel=CHANNEL)
    def echo(self, channel):
        """The last message of one channel comes through the other one too."""
        other = CHANNELS[1 - CHANNELS.index(channel)]
        if self.said[channel]:
            self.said[other].append(replace(self.said[channel][-1], recorded=None))

    @rule()
    def move(self):
        """The bus moves to another cluster, where offsets begin again."""
        self.cluster += 1
        self.said["bus"].clear()
        for read in self.read.values():
            read["bus"] = 0

    @rule(name=EVENTS, channel=CHANNEL, by=HEARERS, votes=READY, then=st.booleans())
    def agree(self, name, channel, by, votes, then):
        """Several voters approve, one after the other."""
        for who, vm in votes:
            self.say(name, who, "approve", vm, "verified", channel, by)
        for at in by if then else ():
            self.look(at)

    @rule(name=EVENTS, who=WHO, what=WHAT, vm=WHERE, at=BRIDGES)
    def call(self, name, who, what, vm, at):
        """A vote by command, at one of the bridges."""
        self.number += 1
        said = Said(self.number, name, who, what, vm, local=True)
        self._tick()
        self.ledgers[at].takes(said, CLOCK.moment)
        message = self._message(said, "control", 0)
        self.runner.run(self.bridges[at].intake.take_local(message, "control", who))

    @rule(at=BRIDGES, channel=CHANNEL, count=st.integers(1, 4))
    def hear(self, at, channel, count):
        """A bridge takes the next message of a channel; taking a message twice changes nothing."""
        first = self.read[at][channel]
        last = min(first + count, len(self.said[channel]))
        self.read[at][channel] = last
        for place in range(max(0, first - 1), last):
            self._tick()
            said = self.said[channel][place]
            if not self.ledgers[at].knows(said):
                said = replace(said, recorded=None)
            self.ledgers[at].takes(said, CLOCK.moment)
            self.runner.run(
                self.bridges[at].intake.take(self._message(said, channel, place), channel)
            )

    def _message(self, said, channel, place):
        who = {"verified": said.who, "claimed": None, "pretended": "somebody else"}[said.proof]
        name = {} if said.proof == "verified" else {"approver": said.who}
        where = {"resource": said.vm} if said.vm else {}
        log = {"_log": f"{self.cluster}/bus/0", "_position": f"bus/0/{place}"}
        return delivery(
            said.event, id=f"m-{said.number}", decision=said.what, **name, **where,
            _identity=who, _recorded=said.recorded, **(log if channel == "bus" else {}),
        )  # fmt: skip

    # --- what bridges do ---------------------------------------------------------------------

    @rule(by=HEARERS, then=st.booleans())
    def poll(self, by, then):
        for at in by:
            self._tick()
            self.runner.run(self.bridges[at].poll())
            if then:
                self.look(at)

    @rule(at=BRIDGES)
    def look(self, at):
        """What must be POSTed is POSTed, and what could not be is published as failed."""
        self._tick()
        ledger, told = self.ledgers[at], self.bridges[at].told
        ledger.looks(CLOCK.moment)
        self.runner.run(self.bridges[at].consider())
        for name in ledger.view:
            posted = (name, ledger.life(name)) in ledger.granted
            prevented = self.windows[at].prevents(name)
            assert posted or prevented or not ledger.demands(name, CLOCK.moment), (
                f"{at} did not POST {name}"
            )
        failed = self.runner.run(told("approval.failed"))
        assert sorted(one["data"]["eventId"] for one in failed) == sorted(ledger.failed)
        assert len(self.runner.run(told("approval.granted"))) == len(ledger.granted)

    @rule(at=BRIDGES, name=EVENTS, who=WHO, what=MEANWHILE, policy=POLICY, votes=READY)
    def look_during_a_slow_poll(self, at, name, who, what, policy, votes):
        """Something happens while a StartRequest waits; the next look finds everything in order."""
        self._begin(name, at)
        self.agree(name, "radio", (at,), votes, then=False)
        self._tick()
        self.ledgers[at].looks(CLOCK.moment)
        if what == "harsher":
            self.change(name, "harsher")
        self.runner.run(self._slowly(at, lambda: self._meanwhile(at, name, who, what, policy)))
        self.look(at)

    def _begin(self, name, at):
        """The event ends, and comes back as one on which this bridge leads."""
        self.azure.answers = True
        self.azure.change(name, None)
        self.poll(VMS, then=False)
        self._announce(name, VMS if at == VMS[0] else VMS[::-1])

    async def _slowly(self, at, meanwhile):
        bridge = self.bridges[at]
        async with bridge.endpoint.turn:
            deciding = asyncio.create_task(bridge.consider())
            while not (deciding.done() or bridge.endpoint.turn._waiters):
                await asyncio.sleep(0)
            self._tick()
            await meanwhile()
        await deciding

    async def _meanwhile(self, at, name, who, what, policy):
        bridge, ledger = self.bridges[at], self.ledgers[at]
        if what == "hold":
            self.number += 1
            said = Said(self.number, name, who, "hold", "", local=True)
            ledger.takes(said, CLOCK.moment)
            await bridge.intake.take_local(self._message(said, "control", 0), "control", who)
        elif what in {"poll", "harsher"}:
            await bridge.poll()
        elif what == "dry run":
            self._configure(at, dry_run=not ledger.dry_run)
        elif what == "policy":
            self._configure(at, require=policy)
        else:
            await self._hear_one(at)

    async def _hear_one(self, at):
        place = self.read[at]["radio"]
        if place < len(self.said["radio"]):
            self.read[at]["radio"] += 1
            said = self.said["radio"][place]
            self.ledgers[at].takes(said, CLOCK.moment)
            await self.bridges[at].intake.take(self._message(said, "radio", place), "radio")

    @rule(at=BRIDGES, policy=POLICY, dry_run=st.booleans(), then=st.booleans())
    def reload(self, at, policy, dry_run, then):
        self._configure(at, require=policy, dry_run=dry_run)
        if then:
            self.look(at)

    def _configure(self, at, **rules):
        self.configured[at].update(rules)
        self.ledgers[at].policy = self.configured[at]["require"]
        self.ledgers[at].dry_run = self.configured[at].get("dry_run", False)
        reconfigure(self.bridges[at], **rules)

    @rule(at=BRIDGES)
    def restart(self, at):
        self.runner.run(self._stop(at))
        self.runner.run(self._start(at))

    @rule(seconds=st.sampled_from([1, 5, 6, 31, 601]), by=HEARERS)
    def wait(self, seconds, by):
        CLOCK.moment += timedelta(seconds=seconds)
        for at in by:
            self.look(at)

    def _tick(self):
        CLOCK.moment += timedelta(milliseconds=1)

    def teardown(self):
        for vm in self.bridges:
            self.runner.run(self._stop(vm))
        self.runner.close()
        self.folder.cleanup()


TestTwoBridges = pytest.mark.timeout(120)(TwoBridges.TestCase)
TestTwoBridges.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
