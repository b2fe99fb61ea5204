"""What the API and the commands read from the journal: events, their history, and the stream."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from bridge.core.cloudevent import PREFIX, TRANSITIONS, CloudEvent, full_type, short_type
from bridge.core.ids import safe_id
from bridge.core.state import Tracked, decode_tracked
from bridge.journal.drills import rehearsed
from bridge.journal.retention import used
from bridge.journal.store import Store, newest

_TRANSITIONS = frozenset(full_type(kind) for kind in TRANSITIONS)
_ALL = ", ".join(f"'{name}'" for name in sorted(_TRANSITIONS))
_MILESTONES = ", ".join(
    f"'{full_type(kind)}'"
    for kind in ("scheduled", "started", "completed", "canceled", "approval.granted")
)
_LOOK_BACK, _MOST_READ = 10_000, 2_000
_MOST_HISTORY = 500
_LAST = 1 << 62


def after(store: Store, seq: int, limit: int = 200) -> list[tuple[int, CloudEvent]]:
    """The CloudEvents recorded after row *seq*, for the stream."""
    rows = store.connection.execute(
        "SELECT seq, id, type, key, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?",
        (seq, limit),
    )
    return [(number, CloudEvent(*row)) for number, *row in rows]


def position(store: Store, event_id: str) -> int | None:
    found = store.connection.execute("SELECT seq FROM outbox WHERE id = ?", (event_id,)).fetchone()
    return int(found[0]) if found else None


def published(store: Store, event_id: str) -> CloudEvent | None:
    """The CloudEvent with this id, if it is still in the outbox."""
    sql = "SELECT id, type, key, body FROM outbox WHERE id = ?"
    found = store.connection.execute(sql, (event_id,)).fetchone()
    return CloudEvent(*found) if found else None


def head(store: Store) -> tuple[int, str | None]:
    """The newest row and its CloudEvent's id: a stream that starts now follows them."""
    found = store.connection.execute(
        "SELECT seq, id FROM outbox ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return (int(found[0]), str(found[1])) if found else (newest(store.connection), None)


def size(store: Store) -> int:
    """The size of the journal in bytes."""
    return used(store.connection)


def pending(store: Store) -> dict[str, Tracked]:
    """All pending events, including drills, each under its `partitionkey`."""
    rows = store.connection.execute("SELECT key, body FROM tracked ORDER BY key")
    known = {**{key: decode_tracked(body) for key, body in rows}, **rehearsed(store)}
    return {safe_id(key): entry for key, entry in known.items() if entry.announced}


class LatestEvents(NamedTuple):
    """The last CloudEvent of each scheduled event; `next` is where the next page begins."""

    events: list[dict[str, Any]]
    next: int | None


def latest(
    store: Store,
    limit: int = 200,
    before: int | None = None,
    wanted: Callable[[dict[str, Any]], bool] | None = None,
) -> LatestEvents:
    """The last CloudEvent of each of the *limit* scheduled events that changed last, newest first.

    It looks at a limited number of rows, so that the journal stays free for other work; a page
    may hold less than there is, and still have a next one.
    """
    seen: set[str] = set()
    events: list[dict[str, Any]] = []
    sql = "SELECT seq, type, key, body FROM outbox WHERE seq < ? ORDER BY seq DESC LIMIT ?"
    start = _LAST if before is None else before
    rows, seq = 0, None
    for seq, kind, key, body in store.connection.execute(sql, (start, _LOOK_BACK)):
        rows += 1
        if kind not in _TRANSITIONS or key in seen:
            continue
        seen.add(key)
        if before is None or not _changed_since(store, key, before):
            events += [one for one in _readable([body]) if wanted is None or wanted(one)]
        if len(events) >= limit or len(seen) >= _MOST_READ:
            return LatestEvents(events, seq)
    return LatestEvents(events, seq if rows == _LOOK_BACK else None)


def _changed_since(store: Store, key: str, seq: int) -> bool:
    """Whether an earlier page has a later state of this event."""
    sql = f"SELECT 1 FROM outbox WHERE key = ? AND seq >= ? AND type IN ({_ALL}) LIMIT 1"
    return store.connection.execute(sql, (key, seq)).fetchone() is not None


def milestones(store: Store, key: str) -> dict[str, dict[str, Any]]:
    """The first CloudEvent of each type in the event's latest life, without votes and changes."""
    sql = f"SELECT body FROM outbox WHERE key = ? AND type IN ({_MILESTONES}) ORDER BY seq"
    rows = store.connection.execute(sql, (key,)).fetchmany(_MOST_HISTORY)
    found: dict[str, dict[str, Any]] = {}
    for one in _readable(body for (body,) in rows):
        kind = short_type(str(one.get("type")))
        if kind == "scheduled":
            found = {}
        found.setdefault(kind, one)
    return found


def last_state(store: Store, key: str) -> dict[str, Any] | None:
    """The last CloudEvent about a change of the event."""
    sql = f"SELECT body FROM outbox WHERE key = ? AND type IN ({_ALL}) ORDER BY seq DESC LIMIT 1"
    found = store.connection.execute(sql, (key,)).fetchone()
    return next(_readable([found[0]]), None) if found else None


def history(store: Store, key: str) -> list[dict[str, Any]]:
    """The CloudEvents about one scheduled event, each with its deliveries.

    If there are very many, the milestones and the newest ones.
    """
    newest = "SELECT seq FROM outbox WHERE key = :key ORDER BY seq DESC LIMIT :most"
    rows = store.connection.execute(
        f"""SELECT seq, body FROM outbox WHERE key = :key
        AND (type IN ({_MILESTONES}) OR seq IN ({newest})) ORDER BY seq LIMIT 2 * :most""",
        {"key": key, "most": _MOST_HISTORY},
    ).fetchall()
    sinks = store.connection.execute("SELECT name, low FROM sink WHERE absent IS NULL").fetchall()
    return [
        {"cloudevent": cloudevent, "deliveries": _deliveries(store, seq, sinks)}
        for seq, body in rows
        for cloudevent in _readable([body])
    ]


def history_length(store: Store, key: str) -> int:
    """How many CloudEvents there are about one scheduled event."""
    sql = "SELECT COUNT(*) FROM outbox WHERE key = ?"
    return int(store.connection.execute(sql, (key,)).fetchone()[0])


def refusals(store: Store, limit: int) -> list[dict[str, Any]]:
    """The latest refusals that were published, newest first, in a limited number of rows."""
    rows = store.connection.execute(
        """SELECT body FROM (SELECT seq, type, body FROM outbox ORDER BY seq DESC LIMIT ?)
        WHERE type = ? ORDER BY seq DESC LIMIT ?""",
        (_LOOK_BACK, full_type("approval.refused"), limit),
    )
    return list(_readable(body for (body,) in rows))


def outcomes(store: Store, approval_id: str) -> list[dict[str, Any]]:
    """What was published about one approval, oldest first, in a limited number of rows."""
    rows = store.connection.execute(
        "SELECT body FROM outbox WHERE type GLOB ? ORDER BY seq DESC LIMIT ?",
        (f"{PREFIX}approval.*", _LOOK_BACK),
    )
    told = _readable(body for (body,) in rows)
    return [one for one in told if one["data"]["approvalId"] == approval_id][::-1]


def _readable(bodies: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The CloudEvents, without those that the disk damaged: one must not make a list fail."""
    for body in bodies:
        with suppress(ValueError):
            yield json.loads(body)


def _deliveries(store: Store, seq: int, sinks: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """What each sink did with a row; one that has yet to try it is waiting."""
    rows = store.connection.execute(
        "SELECT sink, how, attempts, last, error, note FROM delivery WHERE seq = ?", (seq,)
    )
    names = ("sink", "outcome", "attempts", "at", "error", "note")
    found = {row[0]: dict(zip(names, row, strict=True)) for row in rows}
    for sink, low in sinks:
        if low < seq and sink not in found:
            found[sink] = dict(zip(names, (sink, None, 0, None, None, None), strict=True))
    return [found[sink] for sink in sorted(found)]
