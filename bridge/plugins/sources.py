"""What an approval source is: its keys, how it is entered, and what it yields."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from bridge.common.fields import Settings
from bridge.plugins.entry_points import find, installed
from bridge.plugins.placeholders import Place
from bridge.plugins.sinks import SinkSettings

APPROVALS = "scheduled_events_bridge.approvals"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One inbound message. `ack` is awaited after it is in the journal, never before.

    `checkpoint` is a name and a value that the journal stores in the same transaction, for a source
    that resumes where it stopped; `position` is the message's position in a log, if it has one.
    `log` names that log, so that positions in two logs are never compared: source, cluster, topic
    and partition. `recorded` is when the broker recorded the message, if it says so; without
    a log, it is a time of our own clock before which the message was not received.
    `unread` is why it must not be read, such as "retained": it is counted under that name and
    dropped.
    """

    body: bytes
    headers: Sequence[tuple[str, bytes]] = ()
    ack: Callable[[], Awaitable[None]] | None = None
    identity: str | None = None
    position: str | None = None
    checkpoint: tuple[str, str] | None = None
    unread: str | None = None
    log: str | None = None
    recorded: datetime | None = None


class ApprovalSettings(Settings):
    """The keys that all approval sources have."""

    SHARED: ClassVar[tuple[str, ...]] = ()
    """The keys of the connection, which `sink: NAME` copies from that sink."""
    PROVES: ClassVar[bool] = True
    """Whether deliveries may have the identity of their sender, as the transport proved it."""

    type: str
    trust: Literal["transport", "signed"] = Field(
        description="transport: the broker's access control decides who may publish; "
        "signed: each vote needs a signature by a key in approvals.allow"
    )

    @property
    def exclusive(self) -> str | None:
        """What only one sink or approval source may use, in words: a client id at a server."""
        return None

    def describe(self) -> str:
        """Finish the sentence "Approvals from NAME …", for `seb check`."""
        return f"come from a source of type {self.type}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """Whether *sink* publishes to where this source listens."""
        del sink
        return False


@dataclass(frozen=True, slots=True)
class Listening:
    """What a source gets when it is entered.

    `checkpoints` are those of its last deliveries; without any, it starts *lookback* seconds ago.
    It calls `heard(lag)` regularly, even without messages, to show that the broker still answers.
    `connected` is when the source was last known to be connected before; None if it never was.
    """

    name: str
    checkpoints: Mapping[str, str]
    lookback: float
    heard: Callable[[int | None], None]
    connected: datetime | None = None


A = TypeVar("A", bound=ApprovalSettings)


@dataclass(frozen=True, slots=True)
class ApprovalPlugin(Generic[A]):
    """A type of approval source: its keys, and how to enter it.

    The iterator never ends; it raises `Unavailable` when the connection is lost, and the source is
    entered again. The bridge may read up to 256 deliveries ahead, records those that have arrived
    in one transaction, and then awaits the `ack` of each, in order.

    `check` is for `seb check --connect`, if entering would disturb a running bridge; it returns
    what it proved as one sentence, and raises as `open` does.
    """

    settings: type[A]
    open: Callable[[A, Place, Listening], AbstractAsyncContextManager[AsyncIterator[Delivery]]]
    check: Callable[[A, Place], Awaitable[str]] | None = None


def installed_approvals() -> Mapping[str, EntryPoint]:
    return installed(APPROVALS)


def find_approvals(kind: str) -> ApprovalPlugin[Any]:
    """Return the plugin for approval sources of type *kind*, or raise `Misconfigured`."""
    return find(APPROVALS, "approval source", kind, ApprovalPlugin)
