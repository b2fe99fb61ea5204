"""A small world to play histories in: scheduled events, documents, and a bridge's memory of them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from bridge.approvals.outcomes import Cause, Outcome, outcome
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import transitions
from bridge.core.model import Document, Instance, ScheduledEvent
from bridge.core.observer import Observer
from bridge.core.state import Facts, State, Tracked, Transition, decode_tracked, encode_tracked
from bridge.policy.judge import Judgment

ME = "FrontEnd_IN_0"
OTHER = "BackEnd_IN_0"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
NOTICE = timedelta(minutes=15)
SECOND = timedelta(seconds=1)

INSTANCE = Instance(
    name=ME,
    vm_id="13f56399-bd52-4150-9748-7190aae1ff21",
    subscription="8D10DA13-8125-4BA9-A717-BF7490507B3D",
    resource_group="Shop(Prod)",
    resource_id="/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/Shop(Prod)"
    "/providers/Microsoft.Compute/virtualMachines/FrontEnd_IN_0",
    location="westeurope",
    zone="1",
    hostname="frontend0",
    tags={"team": "orders", "secret": "not copied"},
)
OBSERVER = Observer(instance=INSTANCE, tags=("team",), labels={"site": "plant-7"})


def scheduled_event(event_id: str = EVENT_ID, **changes: Any) -> ScheduledEvent:
    """A reboot of this VM and another, announced at noon with a quarter of an hour's notice."""
    usual: dict[str, Any] = {
        "event_type": "Reboot",
        "status": "Scheduled",
        "resources": (ME, OTHER),
        "not_before": NOON + NOTICE,
        "resource_type": "VirtualMachine",
        "description": "Virtual machine is being restarted as requested by authorized user.",
        "event_source": "User",
        "duration": -1,
    }
    return ScheduledEvent(event_id, **{**usual, **changes})


def started(event: ScheduledEvent) -> ScheduledEvent:
    """As Azure says it: NotBefore is empty once the event has started."""
    return replace(event, status="Started", not_before=None)


class World:
    """One bridge on one VM: it sees documents, one second apart by default."""

    def __init__(self, **facts: Any) -> None:
        self.state = State()
        self.facts = Facts(**{"now": NOON, "vm_name": ME, "boot_id": "boot-1", **facts})
        self.incarnation: int | str | None = 0
        self.regressed: tuple[str, ...] = ()
        self.history: list[Transition] = []

    def see(
        self, *events: ScheduledEvent, after: timedelta = SECOND, **facts: Any
    ) -> list[Transition]:
        """Poll a document with these events, and return the transitions."""
        if "incarnation" in facts:
            self.incarnation = facts.pop("incarnation")
        elif isinstance(self.incarnation, int):
            self.incarnation += 1
        self.facts = self.facts._replace(now=self.facts.now + after, **facts)
        step = transitions(self.state, Document(self.incarnation, events), self.facts)
        self.state, self.regressed = step.state, step.regressed
        self.facts = self.facts._replace(watching=True)
        self.history += step.transitions
        return list(step.transitions)

    def restart(self) -> None:
        """The bridge restarts: it only knows what the journal holds."""
        kept = {key: encode_tracked(known) for key, known in self.state.tracked.items()}
        tracked = {key: decode_tracked(text) for key, text in kept.items()}
        self.state = replace(self.state, tracked=tracked)
        self.facts = self.facts._replace(watching=False)

    def boot(self) -> None:
        """The VM boots, and the bridge with it."""
        self.restart()
        self.facts = self.facts._replace(boot_id=f"{self.facts.boot_id}+")


def words(found: list[Transition]) -> list[str]:
    return [transition.what for transition in found]


def published() -> dict[str, CloudEvent]:
    """One CloudEvent of each type from a typical history, keyed by its type."""
    event, other = scheduled_event(), scheduled_event("C7061BAC-AFDC-4513-B24B-AA5F13A16123")
    later = replace(event, not_before=NOON + 2 * NOTICE)
    world = World()
    made = [_told(world, *each) for each in ((event,), (later,), (started(event),))]
    tracked = world.state.tracked
    made += [_told(world), _told(world, other)[:0], _told(world)]
    about = messages.SourceReport(
        since=NOON - NOTICE,
        endpoint="http://169.254.169.254",
        last_good=NOON - NOTICE,
        boot_id="5c8f4a6e-3c38-4c6f-9a0e-3d4c6a1f9b57",
        bridge_version="0.1.0",
    )
    trouble = replace(about, reason="server-error", status=503, clock_skew=0.4)
    calm = replace(about, since=NOON, last_good=NOON, status=200, clock_skew=0.4)
    about_itself = [
        messages.source("degraded", trouble, OBSERVER, NOON),
        messages.source("recovered", calm, OBSERVER, NOON),
        messages.source("snapshot", calm, OBSERVER, NOON, tracked),
        messages.audited(
            "dead-letter.dropped",
            OBSERVER,
            NOON,
            actor="ops",
            via="control",
            detail={"cloudEvent": "61c5ef66-ec50-57a6-af29-e47e13a31a5b", "reason": "too large"},
        ),
    ]
    return {each.type: each for each in [*chain(*made), *outcomes_told(), *about_itself]}


def outcomes_told() -> list[CloudEvent]:
    """A vote that counted, one that did not, their outcomes, and possible others."""
    known = Tracked(scheduled_event(), announced=True, affected=True)
    mine = Cause(
        approval="a-1",
        key="/orders\x1fa-1",
        decision="approve",
        approver="orders-service",
        via="orders-bus",
        position="azure.scheduled-events.approvals/0/17",
        resource=ME,
        said="drained",
    )
    other = replace(mine, approval="b-1", key="/billing\x1fb-1", approver="billing", said=None)
    half = Judgment(satisfied=False, have=(ME,), missing=(OTHER,))
    all_ = Judgment(satisfied=True, have=(ME, OTHER))
    recorded = Outcome("recorded", EVENT_ID, mine, known, half, "each-resource", would_grant=False)
    granted = Outcome("granted", EVENT_ID, other, known, all_, "each-resource", posted_at=NOON)
    refused = Outcome(
        "refused",
        EVENT_ID,
        replace(other, resource=None),
        known,
        policy="each-resource",
        reason="resource-required",
        detail="the event has several VMs; name one in resource",
    )
    failed = replace(
        granted,
        kind="failed",
        judgment=None,
        known=replace(known, event=replace(known.event, status="Started")),
        reason="expired",
        detail="Azure had not confirmed the StartRequest when the event started.",
        posted_at=None,
    )
    due = Outcome(
        "due",
        EVENT_ID,
        Cause(None, "5m", None, None, "remind"),
        known,
        half,
        "each-resource",
        detail=f"Less than 5m before notBefore; missing: {OTHER}.",
    )
    said = (recorded, granted, refused, failed, due)
    return [
        outcome(each, OBSERVER, NOON + NOTICE * 2 / 3 if each is due else NOON) for each in said
    ]


def _told(world: World, *events: ScheduledEvent) -> list[CloudEvent]:
    found = world.see(*events, after=timedelta(minutes=1))
    now = world.facts.now
    return [messages.transition(each, OBSERVER, now, world.incarnation) for each in found]


def as_azure_says(event: ScheduledEvent) -> Mapping[str, Any]:
    """One entry of Events as it comes over the wire."""
    due = event.not_before
    return {
        "EventId": event.event_id,
        "EventType": event.event_type,
        "EventStatus": event.status,
        "ResourceType": event.resource_type,
        "Resources": list(event.resources),
        "NotBefore": due.strftime("%a, %d %b %Y %H:%M:%S GMT") if due else "",
        "Description": event.description,
        "EventSource": event.event_source,
        "DurationInSeconds": event.duration,
        **event.extra,
    }
