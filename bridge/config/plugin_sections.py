"""The sinks and approval sources: each has a name and a type, and its plugin reads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from bridge.config.errors import ConfigProblem, explain
from bridge.config.values import SINK_NAME
from bridge.plugins import (
    ApprovalSettings,
    FormatSettings,
    Misconfigured,
    Settings,
    SinkSettings,
    read_format,
)
from bridge.plugins.formats import find_format, format_data
from bridge.plugins.sinks import find_sink, installed_sinks
from bridge.plugins.sources import find_approvals, installed_approvals
from bridge.policy.votes import OWN_CHANNELS

S = TypeVar("S", bound=Settings)
_FROM: tuple[str, ...] = ("approvals", "from")
_SIGNED = (
    "signed needs a key in approvals.allow, and there is none; with transport, the broker's "
    "access control decides who may publish"
)


def build_sinks(data: Any) -> tuple[dict[str, SinkSettings], list[ConfigProblem]]:
    """Every sink by name, and every problem with them."""

    def build(settings: Mapping[str, Any]) -> SinkSettings:
        model = find_sink(settings["type"]).settings
        if settings.get("format") is not None:
            settings = {**settings, "format": _format(settings["format"])}
        return model.model_validate(settings)  # type: ignore[no-any-return]  # each plugin has a model of its own

    def model(kind: str) -> type[Settings]:
        return find_sink(kind).settings

    return _each(_Kind(("sinks",), "a sink", build, model, sorted(installed_sinks())), data)


def _format(written: Any) -> FormatSettings:
    """Let the format's plugin read it; problems appear under the sink's `format`."""
    try:
        return read_format(written)
    except Misconfigured as error:
        raise _Faulty([ConfigProblem(("format",), str(error))]) from error
    except ValidationError as error:
        data = format_data(written)
        found = explain(error, find_format(data["type"]).settings, data)
        raise _Faulty([ConfigProblem(("format", *one.path), one.text) for one in found]) from error


def build_sources(
    data: Any, written: Any, sinks: Mapping[str, SinkSettings], allow: Any = ()
) -> tuple[dict[str, ApprovalSettings], list[ConfigProblem]]:
    """Every approval source by name; `sink: NAME` uses the connection of that sink."""
    place = _FROM
    if isinstance(data, dict):
        data = {name: _joined(settings, written) for name, settings in data.items()}

    def build(settings: Mapping[str, Any]) -> ApprovalSettings:
        return find_approvals(settings["type"]).settings.model_validate(settings)  # type: ignore[no-any-return]  # each plugin has a model of its own

    def model(kind: str) -> type[Settings]:
        return find_approvals(kind).settings

    kind = _Kind(place, "an approval source", build, model, sorted(installed_approvals()))
    found, problems = _each(kind, data)
    problems += [
        ConfigProblem((*place, name), text)
        for name, source in found.items()
        for text in _faults(name, source, sinks, allow)
    ]
    return found, problems


def _joined(settings: Any, written: Any) -> Any:
    """Add the connection of the named sink to the source's own keys."""
    if not isinstance(settings, dict) or not isinstance(settings.get("sink"), str):
        return settings
    if "type" in settings:
        return settings
    own = {key: value for key, value in settings.items() if key != "sink"}
    sink = written.get(settings["sink"]) if isinstance(written, dict) else None
    if not isinstance(sink, dict) or not isinstance(sink.get("type"), str):
        return settings
    try:
        shared = find_approvals(sink["type"]).settings.SHARED
    except Misconfigured:
        return {"type": sink["type"], **own}
    return {"type": sink["type"], **{k: sink[k] for k in shared if k in sink}, **own}


def _faults(
    name: str, source: ApprovalSettings, sinks: Mapping[str, SinkSettings], allow: Any
) -> list[str]:
    if name in OWN_CHANNELS:
        return [f"is a reserved name ({', '.join(sorted(OWN_CHANNELS))})"]
    found = [
        f"listens where sink {sink_name} publishes; events and approvals need separate topics"
        for sink_name, sink in sinks.items()
        if source.overlaps(sink)
    ]
    return [*found, _SIGNED] if source.trust == "signed" and not _has_key(name, allow) else found


def _has_key(source: str, allow: Any) -> bool:
    """Whether any entry, as written, has a key that is valid on that source."""
    entries = allow if isinstance(allow, list) else []
    return any(
        isinstance(one, dict) and one.get("keys") and one.get("via") in (None, source)
        for one in entries
    )


def conflicts(
    sinks: Mapping[str, SinkSettings], sources: Mapping[str, ApprovalSettings]
) -> list[ConfigProblem]:
    """Sinks and sources that use what only one of them may use; the later one is the problem."""
    users: dict[str, str] = {}
    found = []
    named = [
        *((("sinks",), "sink", name, one.exclusive) for name, one in sinks.items()),
        *((_FROM, "approval source", name, one.exclusive) for name, one in sources.items()),
    ]
    for place, word, name, used in named:
        if used is None:
            continue
        if used in users:
            why = f"has the same {used} as {users[used]}; a server ends one of them for the other"
            found.append(ConfigProblem((*place, name), why))
        users.setdefault(used, f"{word} {name}")
    return found


class _Faulty(Exception):
    """A part that a plugin reads, with every problem in it."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        super().__init__()
        self.problems = problems


@dataclass(frozen=True, slots=True)
class _Kind(Generic[S]):
    """Sinks or approval sources: where they are in the file, and what reads one."""

    place: tuple[str, ...]
    word: str
    build: Callable[[Mapping[str, Any]], S]
    model: Callable[[str], type[Settings]]
    types: Sequence[str]


def _each(kind: _Kind[S], data: Any) -> tuple[dict[str, S], list[ConfigProblem]]:
    if not isinstance(data, dict):
        return {}, [ConfigProblem(kind.place, "must be a mapping of names to settings")]
    built: dict[str, S] = {}
    problems: list[ConfigProblem] = []
    for name, settings in data.items():
        found = _one(kind, name, settings)
        if isinstance(found, list):
            problems += [ConfigProblem((*kind.place, name, *one.path), one.text) for one in found]
        else:
            built[name] = found
    return built, problems


def _one(kind: _Kind[S], name: str, data: Any) -> S | list[ConfigProblem]:
    if not SINK_NAME.fullmatch(name):
        rule = "name has at most 63 characters of a-z 0-9 . _ - and begins with a-z or 0-9"
        return [ConfigProblem((), f"{kind.word}'s {rule}")]
    if isinstance(data, dict) and "sink" in data:
        return [ConfigProblem(("sink",), _bad_sink(data))]
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        return [ConfigProblem((), f"needs a type; choose from {', '.join(kind.types)}")]
    return _built(kind, data)


def _built(kind: _Kind[S], data: Mapping[str, Any]) -> S | list[ConfigProblem]:
    try:
        return kind.build(data)
    except _Faulty as error:
        return error.problems
    except Misconfigured as error:
        return [ConfigProblem(("type",), str(error))]
    except ValidationError as error:
        return explain(error, kind.model(data["type"]), data)


def _bad_sink(data: Mapping[str, Any]) -> str:
    """Explain `sink`: a valid one has been replaced by its connection before this."""
    if "type" in data:
        return "cannot be combined with type; give one of them"
    return f"there is no sink {data['sink']!r}"
