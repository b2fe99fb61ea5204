"""What was observed in a soak, as plain values: the judge, the report and the page need nothing else."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Played:
    """A fault as it was played: when it began and ended, in seconds since the start."""

    kind: str
    target: str
    begun: float
    ended: float
    how: Json = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A CloudEvent in a bridge's journal; a journal that is set aside begins a new generation."""

    bridge: str
    generation: int
    seq: int
    id: str
    type: str
    key: str
    body: str

    @property
    def kind(self) -> str:
        return self.type.removeprefix("azure.scheduledevents.").removesuffix(".v1")

    @property
    def envelope(self) -> Json:
        found: Json = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Delivery:
    """A CloudEvent that a sink's receiver got. `form` says what `digest` is of."""

    sink: str
    bridge: str
    id: str
    at: float
    digest: str
    form: str = "bytes"


@dataclass(frozen=True)
class Look:
    """A document that the metadata service showed to a bridge.

    It is `clean` if the whole answer left in time. The bridge has certainly recorded it when the
    same process asks again: it records before it asks.
    """

    bridge: str
    process: int
    asked: float
    clean: bool
    document: list[Json]


@dataclass(frozen=True)
class Post:
    """A StartRequest as it arrived, and what the bridge's journal said at that moment, by EventId."""

    bridge: str
    at: float
    journals: Mapping[str, Json]


@dataclass
class Told:
    """A story as it went: `expected` is granted, never or any; `since` is from when on."""

    name: str
    plot: str
    event: str
    resources: list[str]
    expected: str = "any"
    since: float = 0.0
    finished: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Sample:
    """What a process uses."""

    bridge: str
    process: int
    at: float
    memory: int
    files: int
    threads: int
    ready: bool
    why: list[str] = field(default_factory=list)
    """What keeps it from being ready: `source`, `journal`, `sink NAME`; nothing if it does not answer."""


@dataclass
class Final:
    """A bridge after the faults: how long until it was ready and had delivered everything."""

    bridge: str
    calm_after: float | None = None
    why: str = ""
    exit_code: int | None = None
    dead_letters: int = 0
    waiting: int = 0
    grants: dict[str, str] = field(default_factory=dict)


@dataclass
class Ledger:
    """All of it; `faults_over` and `ended` are in seconds since the start."""

    seed: int = 0
    seconds: float = 0.0
    nodes: int = 3
    kafka: str = ""
    started: str = ""
    faults_over: float = 0.0
    ended: float = 0.0
    bound: float = 90.0
    faults: list[Played] = field(default_factory=list)
    truth: list[Json] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    excused: list[list[str]] = field(default_factory=list)
    """Bridge and id of what was lost with a journal that the soak tore."""
    deliveries: list[Delivery] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    stories: list[Told] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    finals: list[Final] = field(default_factory=list)
    rules: Json = field(default_factory=dict)
    sinks: dict[str, Json] = field(default_factory=dict)
    """The sinks by name, each with its `only`."""

    def dumps(self) -> str:
        return json.dumps(asdict(self))


_LISTS: dict[str, Any] = {
    "faults": Played,
    "rows": Row,
    "deliveries": Delivery,
    "looks": Look,
    "posts": Post,
    "stories": Told,
    "samples": Sample,
    "finals": Final,
}


def loads(text: str) -> Ledger:
    found = json.loads(text)
    for name, made in _LISTS.items():
        found[name] = [made(**each) for each in found[name]]
    return Ledger(**found)


def digest_of_bytes(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:24]


def digest_of_json(envelope: Json) -> str:
    """For transports that take a CloudEvent apart: the same for the same attributes and data."""
    return digest_of_bytes(json.dumps(envelope, sort_keys=True).encode())
