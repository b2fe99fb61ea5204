"""What happens in a soak, as a pure function of its seed: which faults when, and which scheduled events.

The faults are on lanes: those of one lane follow each other, those of different lanes overlap. Each lane
deals its kinds like a deck of cards, so that all of them occur before one occurs again.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

VMS = ("vm-0", "vm-1", "vm-2")
How = dict[str, Any]
Dice = random.Random
Card = TypeVar("Card")


@dataclass(frozen=True)
class Fault:
    """One fault: `at` is in seconds since the start, `lasting` is how long it stays in force."""

    kind: str
    target: str
    at: float
    lasting: float = 0.0
    how: How = field(default_factory=dict)

    @property
    def until(self) -> float:
        return self.at + self.lasting

    def __str__(self) -> str:
        details = "".join(f" {name}={value}" for name, value in self.how.items())
        lasting = f" for {self.lasting:.1f} s" if self.lasting else ""
        return f"{self.at:6.1f} s  {self.kind} of {self.target}{lasting}{details}"


@dataclass(frozen=True)
class Story:
    """One scheduled event, and what its voters do about it."""

    name: str
    plot: str
    at: float
    event_type: str
    resources: tuple[str, ...]
    channel: str = "kafka"
    worse: str = ""


@dataclass(frozen=True)
class Program:
    """Everything that a soak plays."""

    seed: int
    seconds: float
    nodes: int
    faults: tuple[Fault, ...]
    stories: tuple[Story, ...]

    def dumps(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def with_faults(self, faults: Sequence[Fault]) -> "Program":
        return replace(self, faults=tuple(faults))

    def window(self, start: float, end: float) -> "Program":
        """The part between two moments, moved to the beginning."""
        faults = [replace(f, at=max(0.0, f.at - start)) for f in self.faults if start <= f.at < end]
        stories = [
            replace(s, at=max(0.0, s.at - start)) for s in self.stories if start <= s.at < end
        ]
        return replace(self, seconds=end - start, faults=tuple(faults), stories=tuple(stories))


def loads(text: str) -> Program:
    found = json.loads(text)
    found["faults"] = tuple(Fault(**fault) for fault in found["faults"])
    found["stories"] = tuple(
        Story(**{**story, "resources": tuple(story["resources"])}) for story in found["stories"]
    )
    return Program(**found)


# --- faults --------------------------------------------------------------------------------------


def _number(name: str, *choices: Any) -> Callable[[Dice], How]:
    return lambda dice: {name: dice.choice(choices)}


def _nothing(_: Dice) -> How:
    return {}


@dataclass(frozen=True)
class Kind:
    """A kind of fault on a lane: how long it lasts, and what else is to be drawn."""

    name: str
    shortest: float = 0.0
    longest: float = 0.0
    how: Callable[[Dice], How] = _nothing


_NETWORK = (
    Kind("slow-network", 2, 6, _number("seconds", 0.05, 0.2, 0.5)),
    Kind("silent-network", 2, 8),
    Kind("dead-connections"),
    Kind("cut-network", 1, 6),
    Kind("half-message", 1, 4),
    Kind("reset-connections"),
)
_BRIDGE = (
    Kind("kill", 0.2, 3),
    Kind("kill", 0.1, 0.5),
    Kind("terminate", 0.2, 3),
    Kind("kill-at-commit", 0, 0, lambda d: {"number": d.randint(3, 40), "after": d.random() < 0.5}),
    Kind("freeze", 1, 6),
    Kind("reload"),
    Kind("bad-reload", 1, 3),
    Kind("clock-step", 3, 10, _number("seconds", -90, -20, 20, 90)),
    Kind("full-disk", 2, 6),
    Kind("read-only-disk", 2, 6),
    Kind("slow-disk", 2, 6, _number("milliseconds", 50, 200, 500)),
    Kind("torn-journal", 0.2, 1, _number("damage", "zeros", "cut", "noise")),
)
_METADATA = tuple(
    Kind(f"metadata-{name}", 1.5, 5, how)
    for name, how in (
        ("status", _number("status", 500, 503, 404, 400)),
        ("throttle", _number("retry_after", 1, 2)),
        ("unauthorized", _nothing),
        ("forbidden", _nothing),
        ("not-modified", _nothing),
        ("redirect", _nothing),
        ("empty", _nothing),
        ("garbage", _nothing),
        ("wrong-shape", _nothing),
        ("truncated", _nothing),
        ("oversized", _nothing),
        ("reset", _number("processed", True, False)),
        ("delay", _number("delay", "500ms", "2s", "14s")),
        ("skew", _number("skew", "-60s", "60s")),
    )
)
LANES: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(VMS, _BRIDGE),
    "kafka": (
        Kind("node-kill", 1, 6),
        Kind("node-freeze", 1, 6),
        Kind("topic-made-anew"),
        *_NETWORK,
    ),
    "mqtt": (
        Kind("server-kill", 0.2, 4),
        Kind("server-stop", 0.2, 4),
        Kind("server-freeze", 1, 6),
        *_NETWORK,
    ),
    "webhook": (
        Kind("answer", 1, 4, lambda _: {"status": 429}),
        Kind("answer", 1, 4, lambda d: {"status": 429, "retry_after": d.choice([1, 2])}),
        Kind("answer", 1, 4, _number("status", 500, 502, 503)),
        Kind("answer-reset", 1, 4),
        Kind("no-answer", 1, 6),
        Kind("certificate-rotation"),
        *_NETWORK,
    ),
    "syslog": (
        Kind("reset-connections"),
        Kind("silent-network", 1, 6),
        Kind("cut-network", 1, 6),
    ),
    "command": (Kind("later", 1, 4),),
    "metadata": _METADATA,
    "floods": (Kind("votes"), Kind("garbage"), Kind("connections", 1, 3)),
}
_GAPS = {"floods": (6.0, 14.0), "command": (6.0, 14.0), "syslog": (4.0, 10.0)}
_USUAL_GAP = (2.0, 7.0)
_CALM = 4.0
"""No fault begins in the first seconds, so that each bridge has a first good look."""


def _lane(seed: int, lane: str, seconds: float, nodes: int) -> Iterator[Fault]:
    dice, at = Dice(f"{seed}/{lane}"), _CALM
    for kind in _deal(dice, LANES[lane]):
        at += dice.uniform(*_GAPS.get(lane, _USUAL_GAP))
        lasting = dice.uniform(kind.shortest, kind.longest)
        how = kind.how(dice)
        if kind.name.startswith("node-"):
            how["node"] = dice.randint(1, nodes)
        if lane == "metadata":
            how["vms"] = sorted(dice.sample(VMS, dice.randint(1, 3)))
        if at + lasting >= seconds:
            return
        yield Fault(kind.name, lane, round(at, 2), round(lasting, 2), how)
        at += lasting


def _deal(dice: Dice, cards: Sequence[Card]) -> Iterator[Card]:
    while True:
        yield from dice.sample(cards, len(cards))


# --- scheduled events ----------------------------------------------------------------------------

PLOTS = (
    "approved",
    "approved",
    "drained",
    "worsens",
    "held-and-released",
    "held",
    "partial",
    "forged",
    "late",
    "passes",
    "canceled",
    "rewritten",
    "failure",
)
"""What may become of a scheduled event; `voters` plays them."""
ALONE = {"drained"}
CHANNELS = ("kafka", "mqtt", "kafka", "http")
WORSE = ("resource", "type", "earlier")


def _stories(seed: int, seconds: float) -> Iterator[Story]:
    dice = Dice(f"{seed}/stories")
    plots = _deal(dice, PLOTS)
    at, last = 0.5, max(seconds - 8.0, 1.0)
    for number in count(1):
        if at >= last:
            return
        yield _story(dice, f"story-{number}", next(plots), round(at, 2))
        at += dice.uniform(1.0, 3.5)


def _story(dice: Dice, name: str, plot: str, at: float) -> Story:
    channel = dice.choice(CHANNELS)
    most = 1 if plot in ALONE or channel == "http" else 2 if plot == "worsens" else 3
    least = 2 if plot == "partial" or (plot == "worsens" and channel != "http") else 1
    if plot == "partial":
        channel, most = "kafka", 3
    resources = tuple(dice.sample(VMS, dice.randint(least, most)))
    return Story(name, plot, at, _event_type(dice, plot), resources, channel, dice.choice(WORSE))


def _event_type(dice: Dice, plot: str) -> str:
    if plot == "drained":
        return "Freeze"
    if plot == "passes":
        return dice.choice(["Reboot", "Redeploy", "Preempt", "Terminate"])
    return "Reboot" if plot == "worsens" else dice.choice(["Reboot", "Redeploy"])


def write(seed: int, seconds: float, nodes: int = 3) -> Program:
    """The program of a seed: always the same."""
    faults = [fault for lane in LANES for fault in _lane(seed, lane, seconds, nodes)]
    faults.sort(key=lambda fault: (fault.at, fault.target))
    return Program(seed, seconds, nodes, tuple(faults), tuple(_stories(seed, seconds)))
