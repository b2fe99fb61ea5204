"""What Azure was told, and which reminders are done: one row for each life of an event."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from bridge.core.cloudevent import CloudEvent
from bridge.journal.store import Store

T = TypeVar("T")
GrantState = Literal["due", "asked", "granted", "failed", "settled"]
"""Due: this bridge must tell Azure. Asked: a request may have reached Azure, without an answer yet.
Settled: it no longer must, because another bridge did."""
EventLife = tuple[str, int]
"""A scheduled event in one of its lives."""


def grant_of(store: Store, event: EventLife) -> GrantState | None:
    sql = "SELECT state FROM grants WHERE event = ? AND life = ?"
    found = store.connection.execute(sql, event).fetchone()
    return found[0] if found else None


def granted(store: Store) -> dict[EventLife, float]:
    """The events that Azure was told to start, and when it accepted that."""
    rows = store.connection.execute("SELECT event, life, at FROM grants WHERE state = 'granted'")
    return {(event, life): at for event, life, at in rows}


def duties(store: Store) -> list[EventLife]:
    """The events that this bridge must tell Azure about, those that have waited longest first."""
    sql = "SELECT event, life FROM grants WHERE state = 'due' ORDER BY at"
    return [(event, life) for event, life in store.connection.execute(sql)]


def mark(
    store: Store,
    marked: Sequence[EventLife],
    state: GrantState,
    events: Sequence[CloudEvent],
    now: float,
) -> None:
    """Record the result of telling Azure, together with the CloudEvents about it."""
    with store.transaction(keeps_state=True) as db:
        db.executemany(
            "INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?)",
            [(*event, state, now) for event in marked],
        )
        store.add(db, events, now)


def ask(
    store: Store, choose: Callable[[], Mapping[EventLife, T]], now: float
) -> Mapping[EventLife, T]:
    """Choose and mark the events to ask Azure for, in one transaction.

    *choose* sees everything that was committed before the mark, and nothing comes in between.
    """
    with store.transaction(keeps_state=True) as db:
        chosen = choose()
        db.executemany(
            "INSERT OR REPLACE INTO grants VALUES (?, ?, 'asked', ?)",
            [(*event, now) for event in chosen],
        )
    return chosen


def withdraw(store: Store, events: Sequence[EventLife]) -> None:
    """Note that we no longer must tell Azure: there is a hold, or it is only a dry run.

    No request may be on its way.
    """
    with store.transaction(keeps_state=True) as db:
        for event in events:
            withdraw_in(db, event)
            db.execute("DELETE FROM grants WHERE event = ? AND life = ? AND state = 'asked'", event)


def withdraw_in(db: sqlite3.Connection, event: EventLife) -> None:
    """Remove the duty, but no mark: a request that is on its way cannot be withdrawn."""
    db.execute("DELETE FROM grants WHERE event = ? AND life = ? AND state = 'due'", event)


def undecided(store: Store) -> list[tuple[EventLife, GrantState | None]]:
    """Events with votes that are pending, or that were due or asked for when they ended."""
    rows = store.connection.execute(
        """SELECT DISTINCT v.event, v.life, g.state FROM vote v
        LEFT JOIN grants g ON g.event = v.event AND g.life = v.life
        WHERE g.state IN ('due', 'asked')
        OR (g.state IS NULL AND v.event IN (SELECT key FROM tracked))"""
    )
    return [((event, life), state) for event, life, state in rows]


def reminded(store: Store, event: EventLife) -> set[str]:
    """The reminders that are done for an event."""
    sql = "SELECT reminder FROM reminded WHERE event = ? AND life = ?"
    return {name for (name,) in store.connection.execute(sql, event)}


def remind(
    store: Store,
    event: EventLife,
    reminders: Sequence[str],
    events: Sequence[CloudEvent],
    now: float,
) -> None:
    """Record that these reminders are done, with the CloudEvent about it, if any."""
    with store.transaction(keeps_state=True) as db:
        db.executemany(
            "INSERT OR IGNORE INTO reminded VALUES (?, ?, ?, ?)",
            [(*event, name, now) for name in reminders],
        )
        store.add(db, events, now)
