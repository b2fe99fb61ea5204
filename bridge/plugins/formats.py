"""What a format is: a pure way to say a CloudEvent in other words, usable with any sink."""

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
    """The keys of a format. One that has none of its own can be written as its name alone."""

    type: str


def _everything(_: CloudEvent) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Format:
    """A format, ready for use.

    `encode` gives the bytes, and raises `Rejected` when there are none for this CloudEvent.
    What it does not want is left out, as by a filter: a pager has no words for a snapshot.
    `begins` is how each of its texts begins, so that half of one is known for what it is; empty
    when nobody can say.
    """

    encode: Callable[[CloudEvent], bytes]
    content_type: str
    wants: Callable[[CloudEvent], bool] = _everything
    begins: bytes = b""

    def encode_each(self, batch: Sequence[CloudEvent]) -> list[bytes | Rejected]:
        """The bytes of each, or why there are none; one that cannot be said hinders no other."""
        return [self._try(cloudevent) for cloudevent in batch]

    def _try(self, cloudevent: CloudEvent) -> bytes | Rejected:
        try:
            return self.encode(cloudevent)
        except Rejected as error:
            return error


F = TypeVar("F", bound=FormatSettings)


@dataclass(frozen=True, slots=True)
class FormatPlugin(Generic[F]):
    """A type of format: its keys, how to make one, and what `stale` is unless it is given."""

    settings: type[F]
    open: Callable[[F], Format]
    stale: Literal["deliver", "skip"] = "deliver"


def installed_formats() -> Mapping[str, EntryPoint]:
    return installed(FORMATS)


def find_format(kind: str) -> FormatPlugin[Any]:
    """Return the plugin for the format *kind*, importing its module, or say why not."""
    return find(FORMATS, "format", kind, FormatPlugin)


def read_format(written: object) -> FormatSettings:
    """The settings of a format from its name alone, or from a mapping with its type and keys.

    Raises `Misconfigured`, or pydantic's `ValidationError` for what its own keys have wrong.
    """
    if isinstance(written, FormatSettings):
        return written
    data = format_data(written)
    return find_format(data["type"]).settings.model_validate(data)  # type: ignore[no-any-return]  # each plugin has a model of its own


def format_data(written: object) -> Mapping[str, Any]:
    """What stands under `format`, as a mapping with a type."""
    data = {"type": written} if isinstance(written, str) else written
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        there_are = ", ".join(sorted(installed_formats()))
        raise Misconfigured(f"must be a format's name, or {{type: NAME, …}}; there are {there_are}")
    return data
