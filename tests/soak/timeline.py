"""The timeline of a soak as an SVG drawing: faults, transitions, deliveries and duplicates."""

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from soak.ledger import Ledger, Played
from soak.rulings import cause_of, duplicates, moment

LEFT, RIGHT, TOP = 120, 20, 34
FAULT, TRACK = 20, 40
"""The height of a lane of faults, and of one of deliveries."""
WIDTH = 1120
LANES = (
    "vm-0",
    "vm-1",
    "vm-2",
    "metadata",
    "kafka",
    "mqtt",
    "webhook",
    "syslog",
    "command",
    "floods",
)
COLORS = {"kill": "kill", "timeout": "timeout", "reconnect": "reconnect"}


class Scale:
    """From seconds to pixels."""

    def __init__(self, ledger: Ledger) -> None:
        self.end = max(ledger.ended, 1.0)

    def x(self, seconds: float) -> float:
        share = min(max(seconds, 0.0), self.end) / self.end
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def draw(ledger: Ledger) -> str:
    scale, y, parts = Scale(ledger), TOP, list[str]()
    parts += _axis(ledger, scale)
    for lane in LANES:
        own = [fault for fault in ledger.faults if fault.target == lane]
        parts += [_label(lane, y + 13), *(_fault(fault, scale, y) for fault in own)]
        y += FAULT
    y += 10
    parts += [_label("transitions", y + 25), *_bars(_transitions(ledger), scale, y, "truth")]
    y += TRACK
    again = _again(ledger)
    for sink in ledger.sinks:
        moments = [each.at for each in ledger.deliveries if each.sink == sink]
        parts += [_label(sink, y + 25), *_bars(moments, scale, y, "delivery")]
        parts += [_mark(at, why, scale, y) for at, why in again[sink]]
        y += TRACK
    parts.append(_line(scale.x(ledger.faults_over), TOP - 6, y, "over", "the faults are over"))
    size = f'viewBox="0 0 {WIDTH} {y + 10}" role="img" aria-label="Timeline of the soak"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


def _axis(ledger: Ledger, scale: Scale) -> Iterator[str]:
    step = 60 if ledger.ended > 240 else 10 if ledger.ended > 40 else 5
    for second in range(0, int(ledger.ended) + 1, step):
        named = f"{second // 60} min" if step == 60 else f"{second} s"
        x = scale.x(second)
        yield f'<text class="tick" x="{x}" y="14" text-anchor="middle">{named}</text>'
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="20" y2="2000"/>'


def _label(name: str, y: float) -> str:
    return f'<text class="label" x="{LEFT - 10}" y="{y}" text-anchor="end">{escape(name)}</text>'


def _fault(fault: Played, scale: Scale, y: float) -> str:
    x, end = scale.x(fault.begun), scale.x(fault.ended)
    details = "".join(f" {name}={value}" for name, value in fault.how.items())
    note = f", {fault.note}" if fault.note else ""
    title = f"{fault.kind}{details}, {fault.begun:.1f} s to {fault.ended:.1f} s{note}"
    kind = COLORS[cause_of(fault)]
    box = f'x="{x}" y="{y + 2}" width="{max(end - x, 3):.1f}" height="{FAULT - 5}" rx="2"'
    return f'<rect class="{kind}" {box}><title>{escape(title)}</title></rect>'


def _transitions(ledger: Ledger) -> list[float]:
    kinds = {"scheduled", "updated", "started", "completed", "canceled"}
    return [moment(ledger, each["at"]) for each in ledger.truth if each["what"] in kinds]


def _bars(moments: list[float], scale: Scale, y: float, name: str) -> Iterator[str]:
    """How many in each step of the time, as bars from a common base."""
    wide = 4
    counts: dict[int, int] = defaultdict(int)
    for at in moments:
        counts[int((scale.x(at) - LEFT) // wide)] += 1
    most = max(counts.values(), default=1)
    for place, count in sorted(counts.items()):
        height = max(2, round((TRACK - 12) * count / most))
        x, top = LEFT + place * wide, y + TRACK - 6 - height
        yield f'<rect class="{name}" x="{x}" y="{top}" width="{wide - 1}" height="{height}"/>'


def _again(ledger: Ledger) -> dict[str, list[tuple[float, str]]]:
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for each, _, fault in duplicates(ledger):
        found[each.sink].append((each.at, cause_of(fault) if fault else "unexplained"))
    return found


def _mark(at: float, why: str, scale: Scale, y: float) -> str:
    title = f"duplicate at {at:.1f} s: {why}"
    place = f'cx="{scale.x(at)}" cy="{y + TRACK - 3}" r="2.4"'
    return f'<circle class="{why}" {place}><title>{title}</title></circle>'


def _line(x: float, top: float, bottom: float, name: str, title: str) -> str:
    place = f'x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"'
    return f'<line class="{name}" {place}><title>{title}</title></line>'
