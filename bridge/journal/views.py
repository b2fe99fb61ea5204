"""What the API and the commands read from the journal: events, their history, and the stream."""

import json
from typing import Any

from bridge.cloudevent import CloudEvent
from bridge.journal.store import Store

_TRANSITIONS = tuple(
    f"azure.scheduledevents.{what}.v1"
    for what in ("scheduled", "updated", "started", "completed", "canceled")
)
_MARKS = ",".join("?" for _ in _TRANSITIONS)


def after(store: Store, seq: int, limit: int = 200) -> list[tuple[int, CloudEvent]]:
    """What was recorded after row *seq*, for the stream."""
    rows = store.connection.execute(
        "SELECT seq, id, type, key, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?",
        (seq, limit),
    )
    return [(number, CloudEvent(*row)) for number, *row in rows]


def position(store: Store, event_id: str) -> int | None:
    found = store.connection.execute("SELECT seq FROM outbox WHERE id = ?", (event_id,)).fetchone()
    return int(found[0]) if found else None


def latest(store: Store, limit: int = 200) -> list[dict[str, Any]]:
    """The last CloudEvent of each scheduled event that the journal knows, newest first."""
    rows = store.connection.execute(
        f"""SELECT body FROM outbox WHERE seq IN (
        SELECT MAX(seq) FROM outbox WHERE type IN ({_MARKS}) GROUP BY key)
        ORDER BY seq DESC LIMIT ?""",
        (*_TRANSITIONS, limit),
    )
    return [json.loads(body) for (body,) in rows]


def history(store: Store, key: str) -> list[dict[str, Any]]:
    """Every CloudEvent about one scheduled event, each with what the sinks did about it."""
    rows = store.connection.execute(
        "SELECT seq, body FROM outbox WHERE key = ? ORDER BY seq LIMIT 1000", (key,)
    )
    return [
        {"cloudevent": json.loads(body), "deliveries": _deliveries(store, seq)}
        for seq, body in rows.fetchall()
    ]


def _deliveries(store: Store, seq: int) -> list[dict[str, Any]]:
    rows = store.connection.execute(
        "SELECT sink, how, attempts, last, error FROM delivery WHERE seq = ? ORDER BY sink", (seq,)
    )
    names = ("sink", "outcome", "attempts", "at", "error")
    return [dict(zip(names, row, strict=True)) for row in rows]
