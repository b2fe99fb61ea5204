"""A naive model of a bridge's votes that shares no code with what it checks.

It gets the same documents and messages as the bridge, in the same order, and says what may be POSTed.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bridge.core.model import ScheduledEvent

HOLD = timedelta(minutes=10)
EARLY = timedelta(seconds=30)
TAKEOVER = timedelta(seconds=5)
HARSHER = ["Freeze", "Reboot", "Redeploy"]
POLICIES = ["any", "each-resource", {"count": 2}, {"approvers": ["orders", "billing"]}]
ALLOW = [
    {"approver": "orders", "all_resources": True},
    {"approver": "billing", "decisions": ["approve", "release"]},
]


@dataclass(frozen=True)
class Said:
    """One message; its sender has verified the name, claims it, or forges it.

    `recorded` is when its log recorded it, if that is known.
    """

    number: int
    event: str
    who: str
    what: str
    vm: str
    proof: str = "verified"
    local: bool = False
    recorded: datetime | None = None

    @property
    def verified(self) -> bool:
        return self.proof == "verified"


@dataclass(frozen=True)
class Entry:
    """A vote that counts, since when, and the event as it was then."""

    said: Said
    at: datetime
    about: ScheduledEvent
    dry: bool = False

    @property
    def voter(self) -> tuple[str, str]:
        return self.said.who, self.said.vm

    def lapsed(self, event: ScheduledEvent) -> bool:
        """Only approvals lapse; holds and releases end in other ways."""
        return self.said.what == "approve" and worse(self.about, event)


def worse(before: ScheduledEvent, now: ScheduledEvent) -> bool:
    assert before.not_before
    assert now.not_before
    return (
        not set(now.resources) <= set(before.resources)
        or HARSHER.index(now.event_type) > HARSHER.index(before.event_type)
        or now.not_before < before.not_before
    )


def _same(one: ScheduledEvent, other: ScheduledEvent) -> bool:
    """Whether both are the same state of an event, whatever the order of its VMs."""
    states = [(each.event_type, set(each.resources), each.not_before) for each in (one, other)]
    return states[0] == states[1]


@dataclass
class VoteLedger:
    """The votes of one bridge."""

    vm: str
    policy: Any
    listed: bool
    dry_run: bool = False
    view: dict[str, ScheduledEvent] = field(default_factory=dict)
    past: dict[tuple[str, int], list[tuple[datetime, ScheduledEvent]]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    announced: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    heard: set[int] = field(default_factory=set)
    waiting: list[tuple[Said, datetime, bool]] = field(default_factory=list)
    votes: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)
    granted: set[tuple[str, int]] = field(default_factory=set)
    duties: dict[tuple[str, int], None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    # --- its input ---------------------------------------------------------------------------

    def sees(self, shown: dict[str, ScheduledEvent], now: datetime) -> None:
        for name in set(self.view) - set(shown):
            del self.view[name]
            if name in self.announced:
                self.announced.discard(name)
                self.ended.add(name)
                self.lives[name] = self.lives.get(name, 1) + 1
            else:  # it never concerned this VM, so the bridge does not remember it
                self.past.pop((name, self.life(name)), None)
        for name, event in shown.items():
            known = self.view.get(name, event)
            status = "Started" if known.status == "Started" else event.status
            due = event.not_before or known.not_before
            self.view[name] = replace(event, status=status, not_before=due)
            states = self.past.setdefault((name, self.life(name)), [])
            if not states or not _same(states[-1][1], self.view[name]):
                states.append((now, self.view[name]))
        self.announced |= {name for name, event in shown.items() if self.vm in event.resources}

    def takes(self, said: Said, now: datetime) -> None:
        self._settle(now)
        if said.number in self.heard:
            return
        self.heard.add(said.number)
        if said.event in self.view:
            self._count(said, now, now, dry=self.dry_run)
        elif said.event not in self.ended and said.proof != "pretended":
            self.waiting.append((said, now, self.dry_run))

    def looks(self, now: datetime) -> None:
        """Drop lapsed votes; a StartRequest that was due and is too late has failed."""
        self._settle(now)
        for key in list(self.duties):
            event = self.view.get(key[0])
            if event is not None and self.life(key[0]) != key[1]:
                event = None
            if event is not None and event.status != "Started":
                continue
            del self.duties[key]
            if event is None or (event.not_before and now >= event.not_before):
                self.failed.append(key[0])
        for name, event in self.view.items():
            if event.status != "Started" and (name, self.life(name)) not in self.granted:
                self._drop_lapsed(name, event)
                self._update_duty(name, now, due=self.allows(name, now))

    def is_granted(self, name: str) -> None:
        """Azure has accepted the StartRequest."""
        self.granted.add((name, self.life(name)))
        self.duties.pop((name, self.life(name)), None)

    # --- its state ---------------------------------------------------------------------------

    def life(self, name: str) -> int:
        return self.lives.get(name, 1)

    def cast(self, name: str) -> list[Entry]:
        return self.votes.setdefault((name, self.life(name)), [])

    def _settle(self, now: datetime) -> None:
        waiting, self.waiting = self.waiting, []
        for said, at, dry in waiting:
            if said.event in self.view:
                self._count(said, at, now, dry=dry)
            elif now < at + EARLY:
                self.waiting.append((said, at, dry))
            elif not said.verified:
                self.heard.discard(said.number)  # an unverified stray is forgotten

    def _count(self, said: Said, arrived: datetime, now: datetime, *, dry: bool) -> None:
        event, book = self.view[said.event], self.cast(said.event)
        before = next((one for one in reversed(book) if one.voter == (said.who, said.vm)), None)
        entry = Entry(said, now, self.about(said, arrived), self._is_dry(said, dry=self.dry_run))
        if self._is_forbidden(said, event):
            self.heard.discard(said.number)  # it may be sent again
        elif not self._fits(said, event) or (self._is_dry(said, dry=dry) and not self.dry_run):
            return
        elif not self._may(said):
            self.heard.discard(said.number)
        elif entry.lapsed(event):
            return
        elif before is not None and before.said.verified and not said.verified:
            self.heard.discard(said.number)
        elif said.what == "hold" and (said.event, self.life(said.event)) in self.granted:
            return
        elif before is None or not self._repeats(entry, before, event, now):
            book.append(entry)
            self._update_duty(said.event, now, due=self.turn(said.event) == 0)

    def knows(self, said: Said) -> bool:
        """Whether the bridge knows which state the event had when this was recorded."""
        states = self.past.get((said.event, self.life(said.event)), [])
        known = said.event in self.view and said.recorded is not None
        return known and any(since < said.recorded for since, _ in states if said.recorded)

    def about(self, said: Said, arrived: datetime) -> ScheduledEvent:
        """The state in force here when it was recorded, else when it arrived."""
        states = self.past[said.event, self.life(said.event)]
        moment = said.recorded if said.recorded and self.knows(said) else arrived
        return next((event for since, event in reversed(states) if since < moment), states[0][1])

    @staticmethod
    def _is_dry(said: Said, *, dry: bool) -> bool:
        return dry and said.what == "approve"

    def _is_forbidden(self, said: Said, event: ScheduledEvent) -> bool:
        refused = said.proof == "pretended" or not self._is_allowed(said)
        return refused and self.vm in event.resources

    def _is_allowed(self, said: Said) -> bool:
        if self.listed and said.who == "billing":
            return said.what != "hold"
        return not self.listed or said.who == "orders"

    def _may(self, said: Said) -> bool:
        if said.what == "approve" and isinstance(self.policy, dict):
            return said.verified and said.who in self.policy.get("approvers", [said.who])
        return True

    def _fits(self, said: Said, event: ScheduledEvent) -> bool:
        if self.vm not in event.resources or event.status == "Started":
            return False
        if said.vm:
            return said.vm in event.resources
        alone = len(event.resources) == 1 or self.policy != "each-resource"
        return alone or said.what != "approve" or self._for_all(said)

    def _for_all(self, said: Said) -> bool:
        return self.listed and said.who == "orders"

    def _repeats(self, entry: Entry, before: Entry, event: ScheduledEvent, now: datetime) -> bool:
        said = entry.said
        if before.dry and not entry.dry:
            return False
        if said.what != before.said.what or before.lapsed(event):
            return False
        if said.verified and not before.said.verified:
            return False
        return said.what != "hold" or now < before.at + HOLD

    def _drop_lapsed(self, name: str, event: ScheduledEvent) -> None:
        last = {one.voter: one for one in self.cast(name)}
        gone = {voter for voter, one in last.items() if self._is_over(one, event)}
        self.cast(name)[:] = [one for one in self.cast(name) if one.voter not in gone]

    def _is_over(self, one: Entry, event: ScheduledEvent) -> bool:
        return one.lapsed(event) or (one.dry and not self.dry_run)

    def _update_duty(self, name: str, now: datetime, *, due: bool) -> None:
        """A StartRequest is due on our turn if the votes are enough, and no longer due if they are not."""
        key = (name, self.life(name))
        if key in self.granted:
            return
        if self.dry_run or self.turn(name) is None or not self.enough(name, now, now):
            self.duties.pop(key, None)
        elif due:
            self.duties[key] = None

    # --- its output --------------------------------------------------------------------------

    def turn(self, name: str) -> int | None:
        """0 if we lead, or if a vote was sent only to us."""
        event = self.view[name]
        if self.vm not in event.resources:
            return None
        here = any(one.said.local for one in self._ready(name, self.cast(name)))
        return 0 if here else event.resources.index(self.vm)

    def allows(self, name: str, now: datetime) -> bool:
        """Whether the votes are enough, and were enough when our turn began."""
        event = self.view.get(name)
        if event is None or event.status == "Started" or (turn := self.turn(name)) is None:
            return False
        if self.dry_run:
            return False
        then = now - turn * TAKEOVER
        return self.enough(name, now, now) and self.enough(name, then, then)

    def demands(self, name: str, now: datetime) -> bool:
        """Whether it must be POSTed: it is allowed, and nothing has changed since our turn began."""
        if not self.allows(name, now) or (turn := self.turn(name)) is None:
            return False
        then = now - turn * TAKEOVER
        return all(one.at <= then for one in self.cast(name))

    def enough(self, name: str, then: datetime, now: datetime) -> bool:
        """Whether the votes until *then* are enough for the event as it is."""
        book = [one for one in self.cast(name) if one.at <= then]
        last = list({one.voter: one for one in book}.values())
        if any(self._holds(one, last, now) for one in last):
            return False
        ready = self._ready(name, book)
        if self.policy == "any":
            return bool(ready)
        if self.policy == "each-resource":
            vms = self.view[name].resources
            return all(any(self._is_for(one, vm, vms) for one in ready) for vm in vms)
        names = {one.said.who for one in ready if one.said.verified}
        wanted = self.policy.get("approvers")
        return names >= set(wanted) if wanted else len(names) >= self.policy["count"]

    def _ready(self, name: str, book: list[Entry]) -> list[Entry]:
        last = {one.voter: one for one in book}.values()
        event = self.view[name]
        ready = [one for one in last if one.said.what == "approve"]
        return [one for one in ready if not self._is_over(one, event)]

    def _is_for(self, one: Entry, vm: str, vms: tuple[str, ...]) -> bool:
        if one.said.vm:
            return one.said.vm == vm
        return len(vms) == 1 or self._for_all(one.said)

    def _holds(self, one: Entry, last: list[Entry], now: datetime) -> bool:
        if one.said.what != "hold" or now >= one.at + HOLD:
            return False
        return not any(
            other.said.what == "release"
            and not other.said.vm
            and other.said.who == one.said.who
            and other.said.verified >= one.said.verified
            and other.at >= one.at
            for other in last
        )
