"""Log records on stderr: a stable dotted name with fields, for people and for machines.

`log.info("sink.connected", extra={"sink": name})` is one line of text on a terminal and one JSON
object elsewhere. Values are shortened and escaped, so that input cannot forge a line.
"""

import json
import logging
import math
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

log = logging.getLogger(__name__)

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
LONGEST_VALUE = 1000
MOST_ITEMS = 50
_LONGEST_TRACEBACK = 8000
_LONGEST_KEY = 200
_MINUTE = 60.0
_OWN = ("bridge", "sinks")
_EVENT = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)+")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def setup(level: str | None = None, *, stream: TextIO | None = None) -> None:
    """Log records of *level* and above, by default `info`; raises ValueError for an unknown level.

    Libraries log `warning` and above, in the same format.
    """
    name = (level or "info").strip().lower()
    if name not in LEVELS:
        raise ValueError(f"SEB_LOG: {level!r} is not a log level; choose from {', '.join(LEVELS)}")
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_Text() if _is_terminal(handler.stream) else _Json())
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old, _Handler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(LEVELS[name], logging.WARNING))
    for own in _OWN:
        logging.getLogger(own).setLevel(LEVELS[name])
    noisy = logging.getLogger("asyncio")
    for known in [one for one in noisy.filters if isinstance(one, _Sparse)]:
        noisy.removeFilter(known)
    noisy.addFilter(_Sparse())
    _know_less()
    logging.captureWarnings(capture=True)
    sys.excepthook = _crashed


def add_handler(handler: logging.Handler, *, text: bool = False) -> None:
    """Log to *handler* too: one JSON object for each record, or *text* for people."""
    handler.setFormatter(_Text() if text else _Json())
    logging.getLogger().addHandler(handler)


def _know_less() -> None:
    """Do not collect what no line shows; the manual of `logging` recommends exactly this."""
    logging._srcfile = None  # noqa: SLF001  documented there
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _crashed(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """The last line of a process that nothing else explains, in the format of the others."""
    log.error("bridge.crashed", extra={"error": str(error)}, exc_info=(kind, error, traceback))


def _is_terminal(stream: TextIO | None) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return stream is not None and stream.isatty()
    return False


class _Handler(logging.StreamHandler[TextIO]):
    """Ignore a log that cannot be written: do not fail, and do not report it on that stream."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the base class's name
        del record


@dataclass(slots=True)
class Seldom:
    """Answers at most once a minute, with the number of calls since the last answer."""

    clock: Callable[[], float] = time.monotonic
    _asked: int = 0
    _next: float | None = None

    def now(self) -> int | None:
        self._asked += 1
        if self._next is not None and self.clock() < self._next:
            return None
        count, self._asked, self._next = self._asked, 0, self.clock() + _MINUTE
        return count


class _Sparse(logging.Filter):
    """Lets each message of a library through once a minute; `count` is how often it came.

    asyncio repeats some of them as often as it can, such as when no file is left.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Seldom] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        words = str(record.msg).partition("\n")[0][:_LONGEST_KEY]
        if words not in self._known and len(self._known) >= MOST_ITEMS:
            del self._known[next(iter(self._known))]
        count = self._known.setdefault(words, Seldom()).now()
        if count is not None and count > 1:
            record.count = count
        return count is not None


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        name, fields = _content(record)
        level = "WARN" if record.levelno == logging.WARNING else record.levelname
        moment = datetime.fromtimestamp(record.created).astimezone()
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
        lines = [f"{moment:%H:%M:%S} {level:<5} {name}{pairs}", *_traceback(record)]
        return "\n    ".join(lines)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        name, fields = _content(record)
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": name,
        }
        if lines := _traceback(record):
            fields = {**fields, "traceback": "\n".join(lines)}
        return json.dumps(head | {key: fields[key] for key in fields if key not in head})


def _content(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The name of the record and its fields; a library's message becomes a field."""
    given = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    fields = {key: _plain(value) for key, value in given.items()}
    text = str(record.msg)
    if not record.args and _EVENT.fullmatch(text):
        return text, fields
    return record.name, {"message": _plain(_message(record)), **fields}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _plain(value: object, depth: int = 2) -> Any:
    """The value as JSON allows it; long text and lists are cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else str(value)
    if depth and isinstance(value, Mapping):
        pairs = list(value.items())[:MOST_ITEMS]
        return {_cut(str(key)): _plain(item, depth - 1) for key, item in pairs}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in list(value)[:MOST_ITEMS]]
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _quoted(value: Any) -> str:
    """Bare if that is unambiguous, else as JSON; unprintable characters are escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text.isprintable() and (not isinstance(value, str) or (text and not set(text) & set(' "='))):
        return text
    return json.dumps(value, ensure_ascii=not text.isprintable())


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[1] is None:
        return []
    text = "".join(traceback.format_exception(record.exc_info[1]))[-_LONGEST_TRACEBACK:]
    return [_printable(line) for line in text.rstrip("\n").split("\n")]


def _printable(line: str) -> str:
    return line if line.isprintable() else json.dumps(line)[1:-1]
