"""A bounded world: what Azure announces, who says what, and what may go wrong; and its states."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from support.signing import Signer

from bridge.common.signatures import sign
from bridge.core.ids import digest
from bridge.core.model import Document, ScheduledEvent
from bridge.plugins import Delivery

START = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
NOTICE = timedelta(seconds=60)
STARTED, GONE = -1, -2
SIGNERS = {"orders": Signer("orders"), "billing": Signer("billing", seed=2)}
FORGER = Signer("orders", seed=9)


def scheduled(
    name: str, *resources: str, kind: str = "Reboot", notice: timedelta = NOTICE
) -> ScheduledEvent:
    return ScheduledEvent(name, kind, "Scheduled", resources, START + notice)


@dataclass(frozen=True)
class Message:
    """What somebody says through a channel, on which state of the event.

    A message that `names` its state carries `seen`. On a channel with signatures, a forged one
    has a signature by another key. A local one goes to the bridge `at` that VM only.
    """

    name: str
    event: str
    who: str
    what: Literal["approve", "hold", "release"] = "approve"
    vm: str = ""
    channel: str = "bus"
    saw: int = 0
    names: bool = False
    signed: bool = False
    forged: bool = False
    at: str | None = None

    @property
    def sentence(self) -> str:
        where = f" for {self.vm}" if self.vm else ""
        forged = ", forged" if self.forged else ""
        return f"{self.name} ({self.who}: {self.what} {self.event}{where}{forged})"


Inbox = Literal["new", "taking", "taken"]


@dataclass(frozen=True)
class Side:
    """One bridge from outside: the number of its process, what became of each message, its rules.

    `told` is the StartRequest that is on its way: sent, or accepted by Azure.
    """

    process: int
    inbox: tuple[Inbox, ...]
    rules: int = 0
    told: Literal["", "sent", "accepted"] = ""


@dataclass(frozen=True)
class Azure:
    """The stage of each event: the number of its state while it is Scheduled, STARTED or GONE."""

    stages: tuple[int, ...]
    accepted: tuple[frozenset[str], ...]
    incarnation: int = 1


@dataclass(frozen=True)
class State:
    """One state of the world; the numbers at its end are how often something may still go wrong."""

    time: int
    azure: Azure
    sides: tuple[Side, ...]
    crashes: int
    failures: int
    outages: int
    repeats: int


Turns = Literal["operation", "commit", "request"]
"""At each operation of the journal, before each commit, or only while a StartRequest is sent."""


@dataclass(frozen=True)
class World:
    """What can happen, and how often.

    `events` has the states of each event in order. `rules` are the configurations of approvals; a
    reload goes on to the next. `moments` are the seconds at which the clock stops. `crashes`,
    `failures` of a StartRequest, `outages` of a poll and `repeats` of a message limit what goes
    wrong. `turns` says where the tasks of one bridge take turns; two can be under way at a time.
    """

    name: str
    says: str
    vms: tuple[str, ...]
    events: Mapping[str, tuple[ScheduledEvent, ...]]
    messages: tuple[Message, ...]
    rules: tuple[Mapping[str, Any], ...] = ({"require": "any"},)
    moments: tuple[int, ...] = (0,)
    crashes: int = 0
    failures: int = 0
    outages: int = 0
    repeats: int = 0
    vanishes: bool = False
    drill: str | None = None
    turns: Turns = "commit"
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.events))

    def now(self, time: int) -> datetime:
        return START + timedelta(seconds=self.moments[time])

    def message(self, name: str) -> Message:
        return next(one for one in self.messages if one.name == name)

    def document(self, azure: Azure) -> Document:
        shown = zip(self.names, azure.stages, strict=True)
        events = [self.event(name, stage) for name, stage in shown if stage != GONE]
        return Document(azure.incarnation, tuple(events))

    def event(self, name: str, stage: int) -> ScheduledEvent:
        states = self.events[name]
        if stage == STARTED:
            return replace(states[-1], status="Started", not_before=None)
        return states[stage]

    def delivery(self, message: Message) -> Delivery:
        """The message as its channel delivers it."""
        said = {"eventId": message.event, "decision": message.what, "id": message.name}
        if message.vm:
            said["resource"] = message.vm
        if message.names:
            said["seen"] = digest(self.events[message.event][message.saw])
        body = json.dumps(said).encode()
        if not (message.signed or message.forged):
            return Delivery(body, identity=message.who)
        signer = FORGER if message.forged else SIGNERS[message.who]
        headers = sign([signer.key], message.name, int(START.timestamp()), body)
        return Delivery(body, [(name, value.encode()) for name, value in headers.items()])
