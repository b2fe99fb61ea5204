"""THE PLUGIN INTERFACE: what a sink is, what it may say, and how it is found.

A sink connects, sends and closes. It does not loop, back off, count or log deliveries: the bridge
does that, once, for all of them. To write one, write a `Settings` class with its keys and an async
context manager that yields `send`, join them in a `SinkPlugin`, and name that in the entry-point
group `scheduled_events_bridge.sinks`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from bridge.cloudevent import CloudEvent
from bridge.credentials import (
    TLS,
    ManagedIdentity,
    OAuth,
    TLSOption,
    TokenSource,
    is_loopback,
    read_secret,
)
from bridge.errors import Misconfigured, Rejected, Unavailable
from bridge.fields import Duration, Secret, Settings, Size

__all__ = [
    "TLS",
    "CloudEvent",
    "Duration",
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
    "find_sink",
    "installed_sinks",
    "is_loopback",
    "read_secret",
]

SINKS = "scheduled_events_bridge.sinks"
EXTRAS = ("kafka", "mqtt")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~()-]")


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bridge runs, for `{vm_name}` and its like in topics, client ids and paths.

    `sink` is what the sink itself is called in the configuration.
    """

    names: Mapping[str, str | None] = field(default_factory=dict)
    sink: str = ""

    NAMES = ("observer", "vm_name", "vm_id", "subscription", "resource_group", "location")

    def fill(self, template: str, **more: str) -> str:
        """Put the names in; characters that could leave a topic level or directory become `_`.

        Raises `Unavailable` while a name that is needed is not known yet.
        """

        def value(match: re.Match[str]) -> str:
            found = more.get(match[1]) or self.names.get(match[1])
            if not found:
                raise Unavailable(f"{{{match[1]}}} is not known yet")
            safe = _UNSAFE.sub("_", found)
            return safe if safe.strip(".") else "_"

        return _PLACEHOLDER.sub(value, template)

    @classmethod
    def validate(cls, template: str, *more: str) -> str:
        """Return *template*, or raise ValueError when it asks for a name that there is not."""
        allowed = (*more, *cls.NAMES)
        for name in _PLACEHOLDER.findall(template):
            if name not in allowed:
                raise ValueError(f"{{{name}}} is not known; there are {', '.join(allowed)}")
        return template


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


def installed_sinks() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=SINKS)}


def find_sink(kind: str) -> SinkPlugin[Any]:
    """Return the plugin for sinks of type *kind*, importing its module, or say why not."""
    installed = installed_sinks()
    if kind not in installed:
        there_are = ", ".join(sorted(installed)) or "none: install the package (pip install -e .)"
        raise Misconfigured(f"there is no sink type {kind!r}; there are {there_are}")
    try:
        plugin = installed[kind].load()
    except (ImportError, AttributeError) as error:
        raise Misconfigured(
            f"sink type {kind!r} cannot be loaded: {_missing(kind, error)}"
        ) from error
    if not isinstance(plugin, SinkPlugin):
        raise Misconfigured(f"sink type {kind!r}: {installed[kind].value} is not a SinkPlugin")
    return plugin


def _missing(kind: str, error: ImportError | AttributeError) -> str:
    """Our own sinks lack an extra; what a stranger's lacks is for its author to say."""
    if kind in EXTRAS and isinstance(error, ModuleNotFoundError):
        return f"{error}; install it with: pip install 'scheduled-events-bridge[{kind}]'"
    return str(error)
