"""What a sink is: its keys, how it is entered, and the results that it returns."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field, SerializeAsAny, model_validator

from bridge.common.errors import Rejected, Unavailable
from bridge.common.fields import Duration, Settings
from bridge.core.cloudevent import CloudEvent
from bridge.plugins.entry_points import find, installed
from bridge.plugins.formats import Format, FormatSettings, find_format, read_format
from bridge.plugins.placeholders import Place

SINKS = "scheduled_events_bridge.sinks"


@dataclass(frozen=True, slots=True)
class Delivered:
    """Delivered, with something to record: a `note`, or this VM's vote to cast."""

    note: str | None = None
    approves: bool = False


Result = Unavailable | Rejected | Delivered | None
"""The result for one CloudEvent; None means delivered."""

Send = Callable[[Sequence[CloudEvent]], Awaitable[Sequence[Result]]]
"""Send a batch, in which no two CloudEvents share a key, and return one result for each, in order.

The CloudEvents may be sent concurrently and in any order. An exception or a cancellation counts as
`Unavailable` for the whole batch, and the sink is entered again.
"""


class Only(Settings):
    """Which CloudEvents a sink wants. Filters on transitions do not affect other CloudEvents."""

    types: list[str] | None = Field(None, description="globs over the CloudEvent's type")
    event_types: list[str] | None = Field(None, description="globs over Freeze, Reboot, …")


class Retry(Settings):
    """How long delivery is retried, and how long one attempt may take."""

    max_age: Duration = Field(604800.0, description="an older CloudEvent becomes a dead letter")
    timeout: Duration = Field(
        10.0, gt=0, description="the limit of one attempt; shorter when notice is short"
    )


class SinkSettings(Settings):
    """The keys that all sinks have."""

    type: str
    only: Only = Only()
    format: SerializeAsAny[FormatSettings] | None = Field(
        None, description="a format's name, or {type: NAME} with its keys; default: the sink's own"
    )
    required: bool = Field(
        default=True, description="false: best effort, and never makes the bridge unready"
    )
    retry: Retry = Retry()
    stale: Literal["deliver", "skip"] = Field(
        "deliver",
        description="skip: leave out states that a later one replaces, as chat and paging do",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_format(cls, data: Any) -> Any:
        """Let the format's plugin read it; it also has the default for `stale`."""
        if not isinstance(data, Mapping) or data.get("format") is None:
            return data
        chosen = read_format(data["format"])
        return {"stale": find_format(chosen.type).stale, **data, "format": chosen}

    @property
    def words(self) -> str:
        """The format of the CloudEvents, for `describe`."""
        return "JSON" if self.format is None else self.format.type

    @property
    def largest_batch(self) -> int:
        """The most CloudEvents that `send` gets at a time; few, if each of them takes long."""
        return 500

    @property
    def longest_send(self) -> float | None:
        """Seconds that `send` may take, regardless of the notice; None: as in `retry.timeout`."""
        return None

    @property
    def connects(self) -> bool:
        """Whether the sink has a connection while it is entered, which proves that it works.

        If not, it is untried until its first result.
        """
        return False

    @property
    def keeps_state(self) -> bool:
        """Whether the sink needs `CloudEvent.present`: what changes in what is pending.

        A transition has its own scheduled event there, and a snapshot all that are pending. Drills,
        replays and transitions that a later one has overtaken have nothing.
        """
        return False

    @property
    def exclusive(self) -> str | None:
        """What only one sink or approval source may use, in words: a client id at a server."""
        return None

    def describe(self) -> str:
        """Finish the sentence "sink NAME …", for `seb check`."""
        return f"is a sink of type {self.type}"


S = TypeVar("S", bound=SinkSettings)


@dataclass(frozen=True, slots=True)
class SinkPlugin(Generic[S]):
    """A type of sink: its keys, and how to enter it.

    `open(settings, place)` connects on enter, disconnects on exit, and may be entered again; it
    raises `Unavailable` when the receiver cannot be reached. `check` proves more than entering
    does, for `seb check --connect`, and returns what it proved as one sentence; it raises as `open`
    does.
    """

    settings: type[S]
    open: Callable[[S, Place], AbstractAsyncContextManager[Send]]
    check: Callable[[S, Place], Awaitable[str]] | None = None


def open_format(settings: SinkSettings) -> Format:
    """Open the format that the sink's settings name; CloudEvents if they name none."""
    chosen = read_format("cloudevents") if settings.format is None else settings.format
    format_: Format = find_format(chosen.type).open(chosen)
    return format_


def installed_sinks() -> Mapping[str, EntryPoint]:
    return installed(SINKS)


def find_sink(kind: str) -> SinkPlugin[Any]:
    """Return the plugin for sinks of type *kind*, or raise `Misconfigured`."""
    return find(SINKS, "sink", kind, SinkPlugin)
