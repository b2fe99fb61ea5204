"""What the API and the commands read from the journal: events, their history, and the stream."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from bridge.core.cloudevent import PREFIX, TRANSITIONS, CloudEvent, full_type
from bridge.core.ids import safe_id
from bridge.core.state import Tracked, decode_tracked
from bridge.journal.drills import rehearsed
from bridge.journal.retention import used
from bridge.journal.store import Store, newest

_TRANSITIONS = frozenset(full_type(kind) for kind in TRANSITIONS)
_LOOK_BACK = 10_000


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


def latest(store: Store, limit: int = 200) -> list[dict[str, Any]]:
    """The last CloudEvent of each of the *limit* scheduled events that changed last, newest first.

    It looks at a limited number of rows, so that the journal stays free for other work.
    """
    rows = store.connection.execute(
        "SELECT type, key, body FROM outbox ORDER BY seq DESC LIMIT ?", (_LOOK_BACK,)
    )
    found: dict[str, bytes] = {}
    for kind, key, body in rows:
        if kind in _TRANSITIONS:
            found.setdefault(key, body)
        if len(found) >= limit:
            break
    return list(_readable(found.values()))


def history(store: Store, key: str) -> list[dict[str, Any]]:
    """Every CloudEvent about one scheduled event, each with its deliveries."""
    rows = store.connection.execute(
        "SELECT seq, body FROM outbox WHERE key = ? ORDER BY seq LIMIT 1000", (key,)
    )
    return [
        {"cloudevent": cloudevent, "deliveries": _deliveries(store, seq)}
        for seq, body in rows.fetchall()
        for cloudevent in _readable([body])
    ]


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


def _deliveries(store: Store, seq: int) -> list[dict[str, Any]]:
    rows = store.connection.execute(
        """SELECT sink, how, attempts, last, error, note FROM delivery WHERE seq = ?
        ORDER BY sink""",
        (seq,),
    )
    names = ("sink", "outcome", "attempts", "at", "error", "note")
    return [dict(zip(names, row, strict=True)) for row in rows]
