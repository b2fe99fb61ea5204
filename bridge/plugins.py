"""THE PLUGIN INTERFACE: what a sink and an approval source are, and how they are found.

A sink connects, sends and closes. It does not loop, back off, count or log deliveries: the bridge
does that, once, for all of them. To write one, write a `Settings` class with its keys and an async
context manager that yields `send`, join them in a `SinkPlugin`, and name that in the entry-point
group `scheduled_events_bridge.sinks`. An approval source is the same in the other direction: it
yields deliveries, and is found in `scheduled_events_bridge.approvals`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from bridge.cloudevent import CloudEvent
from bridge.errors import Misconfigured, Rejected, Unavailable
from bridge.fields import Duration, Secret, Settings, Size
from bridge.place import Place

if TYPE_CHECKING:
    from bridge.credentials import (
        TLS,
        ManagedIdentity,
        OAuth,
        TLSOption,
        TokenSource,
        is_loopback,
        read_secret,
    )

__all__ = [
    "TLS",
    "ApprovalPlugin",
    "ApprovalSettings",
    "CloudEvent",
    "Delivery",
    "Duration",
    "Listening",
    "ManagedIdentity",
    "Misconfigured",
    "OAuth",
    "Only",
    "Place",
    "Rejected",
    "Result",
    "Retry",
    "Secret",
    "Send",
    "Settings",
    "SinkPlugin",
    "SinkSettings",
    "Size",
    "TLSOption",
    "TokenSource",
    "Unavailable",
    "find_approvals",
    "find_sink",
    "installed_approvals",
    "installed_sinks",
    "is_loopback",
    "read_secret",
]

SINKS = "scheduled_events_bridge.sinks"
APPROVALS = "scheduled_events_bridge.approvals"
EXTRAS = ("kafka", "mqtt")

Result = Unavailable | Rejected | None
"""What became of one CloudEvent; None is delivered."""

Send = Callable[[Sequence[CloudEvent]], Awaitable[Sequence[Result]]]
"""Send a batch, in which no two CloudEvents share a key, and return one result for each, in order.

The CloudEvents may go out at once and in any order. An exception or a cancellation counts as
`Unavailable` for the whole batch, and the sink is entered anew.
"""


class Only(Settings):
    """Which CloudEvents a sink wants. Filters of transitions leave all others alone."""

    types: list[str] | None = Field(None, description="globs over the CloudEvent's type")
    event_types: list[str] | None = Field(None, description="globs over Freeze, Reboot, …")


class Retry(Settings):
    """How long a sink is asked again, and how long one attempt may take."""

    max_age: Duration = Field(604800.0, description="then the CloudEvent becomes a dead letter")
    timeout: Duration = Field(10.0, gt=0, description="for one attempt; less when notice is short")


class SinkSettings(Settings):
    """The keys that all sinks have."""

    type: str
    only: Only = Only()
    required: bool = Field(
        default=True, description="false: best effort, never makes the bridge unready"
    )
    retry: Retry = Retry()
    stale: Literal["deliver", "skip"] = Field(
        "deliver", description="skip: leave out what a later state has overtaken"
    )

    def describe(self) -> str:
        """Finish the sentence "sink NAME …", for `seb check`."""
        return f"is a sink of type {self.type}"


S = TypeVar("S", bound=SinkSettings)


@dataclass(frozen=True, slots=True)
class SinkPlugin(Generic[S]):
    """A type of sink: its keys, and how to enter it.

    `open(settings, place)` connects on enter, lets go on exit, and may be entered again; it raises
    `Unavailable` when the far side is not there. `check` proves more than entering does, for
    `seb check --connect`, and returns what it proved as one sentence; it raises as `open` does.
    """

    settings: type[S]
    open: Callable[[S, Place], AbstractAsyncContextManager[Send]]
    check: Callable[[S, Place], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One inbound message. `ack` is awaited when it is in the journal, never before.

    `checkpoint` is a name and a value that the journal keeps in the same transaction, for a source
    that starts again where it was; `position` is where the message stands, if it has such a place.
    """

    body: bytes
    headers: Sequence[tuple[str, bytes]] = ()
    ack: Callable[[], Awaitable[None]] | None = None
    identity: str | None = None
    position: str | None = None
    checkpoint: tuple[str, str] | None = None


class ApprovalSettings(Settings):
    """The keys that all approval sources have."""

    SHARED: ClassVar[tuple[str, ...]] = ()
    """The keys of the connection, which `sink: NAME` takes from that sink."""

    type: str
    trust: Literal["transport", "signed"] = Field(
        description="transport: the broker's access control decides who may publish"
    )

    def describe(self) -> str:
        """Finish the sentence "Approvals from NAME …", for `seb check`."""
        return f"come from a source of type {self.type}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """Whether *sink* publishes to where this source listens."""
        del sink
        return False


@dataclass(frozen=True, slots=True)
class Listening:
    """What a source is told when it is entered.

    `checkpoints` are those of its last deliveries; without any it begins *lookback* seconds ago.
    It calls `heard(lag)` now and then, also in silence, to say that the far side still answers.
    """

    name: str
    checkpoints: Mapping[str, str]
    lookback: float
    heard: Callable[[int | None], None]


A = TypeVar("A", bound=ApprovalSettings)
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class ApprovalPlugin(Generic[A]):
    """A type of approval source: its keys, and how to enter it.

    The iterator ends never; it raises `Unavailable` when the far side is gone, and the source is
    entered anew.
    """

    settings: type[A]
    open: Callable[[A, Place, Listening], AbstractAsyncContextManager[AsyncIterator[Delivery]]]


def installed_sinks() -> dict[str, EntryPoint]:
    return _installed(SINKS)


def installed_approvals() -> dict[str, EntryPoint]:
    return _installed(APPROVALS)


def find_sink(kind: str) -> SinkPlugin[Any]:
    """Return the plugin for sinks of type *kind*, importing its module, or say why not."""
    return _find(SINKS, "sink", kind, SinkPlugin)


def find_approvals(kind: str) -> ApprovalPlugin[Any]:
    """Return the plugin for approval sources of type *kind*, or say why not."""
    return _find(APPROVALS, "approval source", kind, ApprovalPlugin)


def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _find(group: str, word: str, kind: str, wanted: type[P]) -> P:
    installed = _installed(group)
    if kind not in installed:
        there_are = ", ".join(sorted(installed)) or "none: install the package (pip install -e .)"
        raise Misconfigured(f"there is no {word} type {kind!r}; there are {there_are}")
    try:
        plugin = installed[kind].load()
    except (ImportError, AttributeError) as error:
        problem = _missing(kind, error)
        raise Misconfigured(f"{word} type {kind!r} cannot be loaded: {problem}") from error
    if not isinstance(plugin, wanted):
        value = installed[kind].value
        raise Misconfigured(f"{word} type {kind!r}: {value} is not a {wanted.__name__}")
    return plugin


def _missing(kind: str, error: ImportError | AttributeError) -> str:
    """Our own sinks lack an extra; what a stranger's lacks is for its author to say."""
    if kind in EXTRAS and isinstance(error, ModuleNotFoundError):
        return f"{error}; install it with: pip install 'scheduled-events-bridge[{kind}]'"
    return str(error)


def __getattr__(name: str) -> Any:
    """Credentials are imported when a plugin asks for them: most sinks need none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridge import credentials  # noqa: PLC0415

    return getattr(credentials, name)
