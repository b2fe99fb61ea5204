"""What a format is: a pure encoder of CloudEvents that works with any sink."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Generic, Literal, TypeVar

from bridge.common.errors import Misconfigured, Rejected
from bridge.common.fields import Settings
from bridge.core.cloudevent import CloudEvent
from bridge.plugins.entry_points import find, installed

FORMATS = "scheduled_events_bridge.formats"


class FormatSettings(Settings):
    """The keys of a format. A format without keys of its own can be written as its name alone."""

    type: str


def _everything(_: CloudEvent) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Format:
    """A format, ready for use.

    `encode` returns the bytes, or raises `Rejected` when it cannot encode this CloudEvent.
    CloudEvents that it does not want are left out, as by a filter: a pager has no use for a
    snapshot. `begins` is how each of its texts starts, so that an incomplete one is recognized;
    empty when that is unknown.
    """

    encode: Callable[[CloudEvent], bytes]
    content_type: str
    wants: Callable[[CloudEvent], bool] = _everything
    begins: bytes = b""

    def encode_each(self, batch: Sequence[CloudEvent]) -> list[bytes | Rejected]:
        """The bytes of each, or why there are none; a failure does not affect the others."""
        return [self._try(cloudevent) for cloudevent in batch]

    def _try(self, cloudevent: CloudEvent) -> bytes | Rejected:
        try:
            return self.encode(cloudevent)
        except Rejected as error:
            return error


F = TypeVar("F", bound=FormatSettings)


@dataclass(frozen=True, slots=True)
class FormatPlugin(Generic[F]):
    """A type of format: its keys, how to create one, and its default for `stale`."""

    settings: type[F]
    open: Callable[[F], Format]
    stale: Literal["deliver", "skip"] = "deliver"


def installed_formats() -> Mapping[str, EntryPoint]:
    return installed(FORMATS)


def find_format(kind: str) -> FormatPlugin[Any]:
    """Return the plugin for the format *kind* and import its module, or raise `Misconfigured`."""
    return find(FORMATS, "format", kind, FormatPlugin)


def read_format(written: object) -> FormatSettings:
    """The settings of a format from its name alone, or from a mapping with its type and keys.

    Raises `Misconfigured`, or pydantic's `ValidationError` for errors in its own keys.
    """
    if isinstance(written, FormatSettings):
        return written
    data = format_data(written)
    return find_format(data["type"]).settings.model_validate(data)  # type: ignore[no-any-return]  # each plugin has a model of its own


def format_data(written: object) -> Mapping[str, Any]:
    """The value of `format`, as a mapping with a type."""
    data = {"type": written} if isinstance(written, str) else written
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        names = ", ".join(sorted(installed_formats()))
        raise Misconfigured(f"must be a format's name, or {{type: NAME, …}}; choose from {names}")
    return data
