"""Drills in the journal, apart from Azure's events, so that they are never confused."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import (
    REHEARSED,
    Ended,
    State,
    Tracked,
    decode_tracked,
    encode_tracked,
    moment,
)
from bridge.journal.schema import Corrupt
from bridge.journal.store import Store
from bridge.policy.drill import Drill, DrillVotes

MOST_KEPT = 100
"""How many finished drills are kept."""


def begin(store: Store, drill: Drill, events: Sequence[CloudEvent], now: float) -> Drill | None:
    """Record the drill with its announcement; or return the drill that is already running."""
    with store.transaction() as db:
        running = under_way(store)
        if running is not None:
            return running
        db.execute("INSERT INTO drill VALUES (?, 1, ?, ?)", (drill.key, now, _written(drill)))
        store.add(db, events, now)
        db.execute(
            """DELETE FROM drill WHERE open = 0 AND event NOT IN (
            SELECT event FROM drill ORDER BY open DESC, at DESC LIMIT ?)""",
            (MOST_KEPT,),
        )
    return None


def proceed(
    store: Store, before: Drill, after: Drill, events: Sequence[CloudEvent], now: float
) -> bool:
    """Record the drill's new state with its CloudEvents; False when it has changed meanwhile."""
    with store.transaction() as db:
        done = db.execute(
            "UPDATE drill SET open = ?, at = ?, body = ? WHERE event = ? AND body = ?",
            (int(not after.over), now, _written(after), before.key, _written(before)),
        ).rowcount
        if done:
            store.add(db, events, now)
        return bool(done)


def under_way(store: Store) -> Drill | None:
    found = store.connection.execute("SELECT body FROM drill WHERE open = 1").fetchone()
    return _read(found[0]) if found else None


def find(store: Store, event_key: str) -> Drill | None:
    sql = "SELECT body FROM drill WHERE event = ?"
    found = store.connection.execute(sql, (event_key,)).fetchone()
    return _read(found[0]) if found else None


def every(store: Store) -> list[Drill]:
    """The running drill, then the finished ones, the latest first."""
    rows = store.connection.execute("SELECT body FROM drill ORDER BY open DESC, at DESC")
    return [_read(body) for (body,) in rows]


def rehearsed(store: Store) -> dict[str, Tracked]:
    """The running drill, in the form of a tracked Azure event."""
    drill = under_way(store)
    return {} if drill is None else {drill.key: drill.known}


def open_to_votes(store: Store) -> State:
    """All that is open to votes. Only `Store.load`, without drills, decides what Azure is told."""
    return store.cached(_read_open)


def _read_open(store: Store) -> State:
    state = store.cached(Store.load)
    rows = store.connection.execute("SELECT event, at FROM drill WHERE open = 0")
    over = {key: Ended(REHEARSED, datetime.fromtimestamp(at, UTC)) for key, at in rows}
    return replace(
        state, tracked={**state.tracked, **rehearsed(store)}, ended={**over, **state.ended}
    )


def _written(drill: Drill) -> str:
    body = {**asdict(drill), "known": json.loads(encode_tracked(drill.known))}
    return json.dumps(body, default=datetime.isoformat, separators=(",", ":"))


def _read(text: str) -> Drill:
    try:
        return _decode(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"a drill cannot be read: {error!r}") from error


def _decode(body: dict[str, Any]) -> Drill:
    ballot, sinks = body.pop("ballot"), body.pop("sinks")
    return Drill(
        known=decode_tracked(json.dumps(body.pop("known"))),
        begun_at=_moment(body.pop("begun_at")),
        approve_by=_moment(body.pop("approve_by")),
        sinks=tuple((name, kind, required) for name, kind, required in sinks),
        ballot=_ballot(ballot) if ballot else None,
        started_at=moment(body.pop("started_at")),
        ended_at=moment(body.pop("ended_at")),
        **body,
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _ballot(body: dict[str, Any]) -> DrillVotes:
    since = moment(body.pop("since"))
    read: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in body.items()
    }
    return DrillVotes(since=since, **read)
