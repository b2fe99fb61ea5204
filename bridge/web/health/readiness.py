"""Decides from the status of the parts whether the bridge is ready; pure."""

from dataclasses import dataclass
from typing import Any, Literal

from bridge.common.fields import write_duration
from bridge.runtime.runbook import Topic, link
from bridge.runtime.status import SinkStatus, Status

FRESH = 30.0
"""How many seconds a good answer is fresh, or for `FRESH_POLLS` polls if that is longer."""
FRESH_POLLS = 10
SILENT = 120.0
"""How long an approval source may be silent: it reports regularly, even without votes."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A reason why the bridge is not ready, or a note; the runbook has more on its topic."""

    what: str
    why: str
    topic: Topic

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "why": self.why, "runbook": link(self.topic)}


@dataclass(frozen=True, slots=True)
class Readiness:
    """The bridge is ready if there are no reasons against it; notes do not count."""

    reasons: tuple[Remark, ...] = ()
    notes: tuple[Remark, ...] = ()

    @property
    def ready(self) -> bool:
        return not self.reasons

    def as_json(self) -> dict[str, Any]:
        return {
            "ready": self.ready,
            "reasons": [each.as_json() for each in self.reasons],
            "notes": [each.as_json() for each in self.notes],
        }


@dataclass(frozen=True, slots=True)
class HealthView:
    """What readiness depends on, at one moment of the monotonic clock."""

    status: Status
    monotonic: float
    poll_interval: float
    scope: Literal["own", "all"]
    vm_name: str | None
    journal_trouble: str | None
    set_aside: str | None = None
    """The last journal that could not be used, with the reason."""


def readiness(view: HealthView) -> Readiness:
    """The bridge needs a fresh source, a writable journal and its required sinks."""
    sinks = [
        (sink.required, _sink(name, sink))
        for name, sink in view.status.sinks.items()
        if sink.state in {"unavailable", "stopped"}
    ]
    reasons = [remark for remark in (_source(view), _journal(view)) if remark]
    reasons += [remark for required, remark in sinks if required]
    notes = [remark for required, remark in sinks if not required]
    return Readiness(tuple(reasons), (*_notes(view), *notes))


def _sink(name: str, sink: SinkStatus) -> Remark:
    if sink.state == "stopped":
        why = f"stopped: {sink.error}; fix that, then run: seb sinks --resume {name}"
        return Remark(f"sink {name}", why, "sink-stopped")
    return Remark(f"sink {name}", sink.error or "unavailable", "sink-unavailable")


def _source(view: HealthView) -> Remark | None:
    source = view.status.source
    age = source.good_age(view.monotonic)
    limit = max(FRESH, FRESH_POLLS * view.poll_interval)
    if age is not None and age <= limit:
        return None
    silence = (
        "has not answered yet" if age is None else f"has given no usable answer for {_round(age)}"
    )
    because = [part.rstrip(".") for part in (source.problem, source.detail) if part]
    why = f"the metadata service {silence}" + (f" ({': '.join(because)})" if because else "")
    return Remark("source", why, "source")


def _journal(view: HealthView) -> Remark | None:
    trouble = view.journal_trouble
    return Remark("journal", trouble, "journal-unwritable") if trouble else None


def _notes(view: HealthView) -> list[Remark]:
    notes = []
    if view.scope == "own" and view.vm_name is None:
        why = "this VM's name is not known yet, so the scheduled events of all VMs are published"
        notes.append(Remark("scope", why, "vm-name"))
    untried = [name for name, sink in view.status.sinks.items() if sink.state == "untried"]
    why = "untried: nothing was delivered yet"
    notes += [Remark(f"sink {name}", why, "sink-untried") for name in untried]
    notes += [*_clock(view), *_approvals(view)]
    return notes + _losses(view)


def _losses(view: HealthView) -> list[Remark]:
    """What the journal has lost since the start; it stays a note until the next start."""
    notes = []
    if view.set_aside:
        why = f"a journal was set aside as {view.set_aside}; local votes and holds in it are lost"
        notes.append(Remark("journal", why, "journal-set-aside"))
    if lost := view.status.journal_losses:
        why = f"{lost} deliveries were lost since the start, because the journal was full"
        notes.append(Remark("journal", why, "journal-full"))
    return notes


def _clock(view: HealthView) -> list[Remark]:
    source = view.status.source
    if not source.skewed or source.clock_skew is None:
        return []
    how = "ahead of" if source.clock_skew > 0 else "behind"
    off = _round(abs(source.clock_skew))
    why = f"this VM's clock is {off} {how} Azure's; check how its time is synchronized"
    return [Remark("clock", why, "clock")]


def _approvals(view: HealthView) -> list[Remark]:
    """Notes on approval sources that cannot be read or are silent for too long."""
    notes = []
    for name, source in view.status.listeners.items():
        silence = view.monotonic - (source.heard if source.heard is not None else view.monotonic)
        if source.state == "unavailable":
            why = source.error or "unavailable"
            notes.append(Remark(f"approvals {name}", why, "approval-source"))
        elif silence > SILENT:
            why = f"has been silent for {_round(silence)}"
            notes.append(Remark(f"approvals {name}", why, "approval-source"))
    return notes


def _round(seconds: float) -> str:
    whole = int(seconds)
    return write_duration(whole if whole < 120 else whole - whole % 60)
