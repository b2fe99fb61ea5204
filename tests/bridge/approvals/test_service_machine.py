"""Two bridges on one bus under one Azure, with random steps in random order.

Votes reach the bridges at different times, or only one of them; events change, end and return;
bridges decide late, restart and get no answer. A VoteLedger models each of them.
"""

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from support.ballots import delivery
from support.bridge import Bridge, make_config, make_runtime
from support.clock import StillClock
from support.vote_ledger import ALLOW, HARSHER, POLICIES, Said, VoteLedger

from bridge.core.model import Document, Instance, ScheduledEvent
from bridge.journal import Journal
from bridge.metadata.answers import Accepted, Answer, SourceProblem

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
PROOF = st.sampled_from(["proved", "proved", "proved", "claimed", "pretended"])
CHANNELS = ("bus", "radio")
CHANNEL = st.sampled_from(CHANNELS)
READY = st.permutations([(who, vm) for who in ("orders", "billing") for vm in VMS])
HEARERS = st.sampled_from([VMS, VMS, VMS, VMS[:1], VMS[1:], ()])


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
    """Azure as one VM sees it; the ledger must allow everything that is POSTed here."""

    def __init__(self, azure, ledger):
        self.azure, self.ledger = azure, ledger
        self.tried, self.fresh = {}, False

    async def instance(self):
        return Instance(name=self.ledger.vm, vm_id=self.ledger.vm)

    async def fetch(self):
        if not self.azure.answers:
            return BROKEN
        self.fresh = True
        self.ledger.sees(self.azure.events)
        return Answer(Document(self.azure.incarnation, tuple(self.azure.events.values())))

    async def approve(self, ids, _):
        assert self.fresh, f"{self.ledger.vm} POSTed {ids} by what it knew before it stopped"
        for name in ids:
            assert self.ledger.allows(name, CLOCK.moment), f"{self.ledger.vm} POSTed {name}"
            assert (name, self.ledger.life(name)) not in self.ledger.granted, f"{name} again"
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
        self.number = 0

    @initialize(policy=st.sampled_from(POLICIES), listed=st.booleans())
    def open(self, policy, listed):
        self.policy = {"require": policy, "allow": ALLOW if listed else []}
        for vm in VMS:
            self.ledgers[vm] = VoteLedger(vm, policy, listed)
            self.windows[vm] = Window(self.azure, self.ledgers[vm])
            self.read[vm] = dict.fromkeys(CHANNELS, 0)
            self.runner.run(self._start(vm))
        self._announce("A", VMS)

    async def _start(self, vm):
        folder = Path(self.folder.name) / vm
        folder.mkdir(exist_ok=True)
        config = make_config(folder, "http://127.0.0.1:9", {}, **self.policy)
        journal = Journal(folder / "journal.db")
        await journal.open()
        await journal.run(lambda store: store.connection.execute("PRAGMA synchronous = OFF"))
        made = Bridge(await make_runtime(config, journal, CLOCK), self.windows[vm])
        made.intake.patience = 0.0
        made.azure.approve = made.endpoint.approve
        made.endpoint._client = self.windows[vm]
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

    @rule(name=EVENTS, how=st.sampled_from(["harsher", "milder", "earlier", "later", "more", "fewer", "turned"]))  # fmt: skip
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
        self.said[channel].append(Said(self.number, name, who, what, vm, proof))
        for at in by:
            self.hear(at, channel, len(self.said[channel]))

    @rule(name=EVENTS, channel=CHANNEL, by=HEARERS, votes=READY, then=st.booleans())
    def agree(self, name, channel, by, votes, then):
        """Several voters approve, one after the other."""
        for who, vm in votes:
            self.say(name, who, "approve", vm, "proved", channel, by)
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
            self.ledgers[at].takes(said, CLOCK.moment)
            self.runner.run(
                self.bridges[at].intake.take(self._message(said, channel, place), channel)
            )

    def _message(self, said, channel, place):
        who = {"proved": said.who, "claimed": None, "pretended": "somebody else"}[said.proof]
        name = {} if said.proof == "proved" else {"approver": said.who}
        where = {"resource": said.vm} if said.vm else {}
        position = f"bus/0/{place}" if channel == "bus" else None
        return delivery(
            said.event, id=f"m-{said.number}", decision=said.what, **name, **where,
            _identity=who, _position=position,
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
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
