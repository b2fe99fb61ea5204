"""What the live view of `seb watch` shows, as lines that fit the terminal; pure."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bridge.cli.event_line import EventText
from bridge.cli.ids import shortened
from bridge.cli.text import countdown, cut, names, printable, table
from bridge.cli.voting.progress import progress

_HEADS = ("ID", "TYPE", "STATUS", "STARTS IN", "VOTE IN", "APPROVALS", "VMS")
_KEEP = 100
_URGENT, _SOON = 60, 300
_RED, _YELLOW, _BOLD, _FAINT, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_HINT = "Ctrl-C ends the view. seb approve ID approves, seb events ID shows the history."


@dataclass(slots=True)
class Picture:
    """Everything that the view shows; *trouble* is why nothing new arrives."""

    vm: str | None = None
    events: Sequence[Mapping[str, Any]] = ()
    latest: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEEP))
    trouble: str | None = None

    def lines(self, now: datetime, width: int, height: int) -> list[str]:
        """As many lines as fit, with colors."""
        room = height - 7
        events = list(self.events[: max(room // 2, 1)])
        pending = self._pending(events, now, width)
        if len(events) < len(self.events):
            pending.append(_faint(f"and {len(self.events) - len(events)} more", width))
        spare = max(room + 1 - len(pending), 0)
        news = list(self._news(spare, now, width)) or [_faint("Nothing yet.", width)]
        middle = [*pending, "", _bold("Latest CloudEvents", width), *news]
        gap = [""] * max(height - len(middle) - 4, 0)
        shown = [self._title(now, width), "", *middle, *gap, "", _faint(_HINT, width)]
        return shown[:height]

    def _title(self, now: datetime, width: int) -> str:
        vm = f"Scheduled events of {printable(self.vm)}" if self.vm else "Scheduled events"
        count = f"{vm}: {len(self.events)} pending"
        if self.trouble is not None:
            text = f"{self.trouble}. Trying again."
            return f"{_RED}{cut(printable(text), width)}{_PLAIN}"
        right = f"{now.astimezone(UTC):%H:%M:%SZ}"
        return _bold(f"{cut(count, width - 11).ljust(width - 10)} {right}", width)

    def _pending(self, events: Sequence[Mapping[str, Any]], now: datetime, width: int) -> list[str]:
        if not events:
            return [_faint("No scheduled event is pending.", width)]
        short = shortened(event["eventId"] for event in self.events)
        rows = [_row(event, short[event["eventId"]], now) for event in events]
        head, *lines = table(_HEADS, rows, width).splitlines()
        painted = [
            _painted(line, _urgency(event, now)) for line, event in zip(lines, events, strict=True)
        ]
        return [_faint(head, width), *painted]

    def _news(self, most: int, now: datetime, width: int) -> Iterator[str]:
        """The newest first."""
        newest = sorted(self.latest, key=lambda one: str(one["time"]), reverse=True)
        for cloudevent in newest[:most]:
            text = EventText(cloudevent)
            yield _painted(cut(text.brief(now), width), text.paint())


def _row(event: Mapping[str, Any], short: str, now: datetime) -> tuple[object, ...]:
    scheduled = event["status"] == "Scheduled"
    return (
        short,
        event["eventType"],
        f"{event['status']}{' (drill)' if event['drill'] else ''}",
        _left(event["notBefore"], now) if scheduled else "-",
        _left(event["approveBy"], now) if scheduled else "-",
        progress(event),
        names(event["resources"], 1),
    )


def _left(text: str | None, now: datetime) -> str:
    if text is None:
        return "-"
    return countdown((datetime.fromisoformat(text) - now).total_seconds())


def _urgency(event: Mapping[str, Any], now: datetime) -> str:
    if event["status"] != "Scheduled" or event["notBefore"] is None:
        return ""
    left = (datetime.fromisoformat(event["notBefore"]) - now).total_seconds()
    return _RED if left < _URGENT else _YELLOW if left < _SOON else ""


def _painted(text: str, paint: str) -> str:
    return f"{paint}{text}{_PLAIN}" if paint else text


def _bold(text: str, width: int) -> str:
    return f"{_BOLD}{cut(text, width)}{_PLAIN}"


def _faint(text: str, width: int) -> str:
    return f"{_FAINT}{cut(text, width)}{_PLAIN}"
