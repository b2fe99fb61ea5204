"""One CloudEvent as one line of `seb watch`; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bridge.cli.text import clock, names, printable
from bridge.cli.voting.result import short
from bridge.policy.require import ANY_APPROVER

_RED, _YELLOW, _GREEN, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
_ALARMING, _NOTABLE = 17, 13
_WIDTHS = (9, 17, 9, 36)
_ENDS = {"canceled": "no longer announced", "completed": "over"}


def is_own(cloudevent: Mapping[str, Any]) -> bool:
    """Whether its scheduled event names this VM, or may name it while the VM's name is unknown.

    The bridge that published it runs on this VM, so we rely on its answer.
    """
    data = cloudevent["data"]
    if data.get("eventType") is None:
        return False
    return bool(data["observer"]["affected"] is not False)


@dataclass(frozen=True, slots=True)
class EventText:
    """A CloudEvent to describe in words."""

    cloudevent: Mapping[str, Any]

    def line(self, now: datetime, *, color: bool = False) -> str:
        data = self.cloudevent["data"]
        parts = (
            _time(self.cloudevent["time"], now),
            short(self.cloudevent),
            data.get("eventType"),
            data.get("eventId"),
        )
        cells = [printable(part).ljust(width) for part, width in zip(parts, _WIDTHS, strict=True)]
        text = "  ".join((*cells, self.remark(now))).rstrip()
        paint = self.paint() if color else ""
        return f"{paint}{text}{_PLAIN if paint else ''}\n"

    def remark(self, now: datetime) -> str:
        """What it says besides its type and its subject."""
        drill = "DRILL" if self.cloudevent["data"].get("drill") else None
        stray = "STRAY" if self.cloudevent.get("stray") else None
        told = (drill, stray, *self._remarks(now))
        return "; ".join(printable(one).rstrip(".") for one in told if one)

    def brief(self, now: datetime) -> str:
        """The same for a narrow terminal: a short id, and no type of event."""
        data = self.cloudevent["data"]
        when, subject = _time(self.cloudevent["time"], now), printable(data.get("eventId"))[:8]
        cells = when.ljust(9), short(self.cloudevent).ljust(17), subject.ljust(8)
        return "  ".join((*cells, self.remark(now))).rstrip()

    def paint(self) -> str:
        """The color of its severity, as a terminal takes it; empty for none."""
        severity = self.cloudevent.get("severitynumber", 0)
        if severity >= _ALARMING:
            return _RED
        if severity >= _NOTABLE:
            return _YELLOW
        return _GREEN if short(self.cloudevent) == "approval.granted" else ""

    def _remarks(self, now: datetime) -> tuple[object, ...]:
        kind, data = short(self.cloudevent), self.cloudevent["data"]
        if kind.startswith("approval."):
            return _of_approval(kind, data)
        if "rank" in data:
            return _of_transition(kind, data, now)
        if kind.startswith("source."):
            return _of_source(data)
        return (data.get("action"), data.get("actor"))


def _time(text: str, now: datetime) -> str:
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return f"{moment:%H:%M:%SZ}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M:%SZ}"


def _of_transition(kind: str, data: Mapping[str, Any], now: datetime) -> tuple[object, ...]:
    when = None
    if data["status"] == "Scheduled" and data["notBefore"]:
        when = f"not before {clock(data['notBefore'], now)}"
    changed = ", ".join(data["changes"]) if kind == "updated" else ""
    said = _ENDS.get(kind) or data["description"]
    return names(data["resources"]), when, changed and f"changed: {changed}", said


def _of_approval(kind: str, data: Mapping[str, Any]) -> tuple[object, ...]:
    if kind == "approval.due":  # its sentence already names who is missing
        return (data["detail"],)
    who = f"{data['decision']} by {data['approver']}" if data["approver"] else None
    spoken_for = f"for {data['resource']}" if data["resource"] else None
    missing, holds = data["votes"]["missing"], data["votes"]["holds"]
    lacking = f"missing: {names(missing)}" if missing else None
    lacking = "nobody has approved" if tuple(missing) == ANY_APPROVER else lacking
    held = f"held by: {names(holds)}" if holds else None
    dry = "dry run" if data["dryRun"] and not data["drill"] else None
    return who, spoken_for, data["reason"], data["detail"], lacking, held, dry


def _of_source(data: Mapping[str, Any]) -> tuple[object, ...]:
    pending = data.get("pending")
    return data.get("reason"), f"{len(pending)} pending" if pending is not None else None
