"""Votes, the messages that brought them, and the approvals that still wait for their event."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import Tracked, moment, plain, shallow
from bridge.journal.grants import EventLife, withdraw_in
from bridge.journal.retention import bound_votes, has_room, has_room_for_outcomes
from bridge.journal.schema import hashed
from bridge.journal.store import Store, is_of_unverified
from bridge.policy.judge import CountedVotes, Rules
from bridge.policy.votes import Announced, Approval, Given, Vote

UNLIMITED = 1 << 62
MOST_COUNTED = 10_000  # events whose votes are counted in memory
_JSON = json.JSONEncoder(default=plain)
_SOME = 0
"""In place of the number of a state, where only the length counts."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Everything that one inbound message changes, written in one transaction.

    `duties` says for which events we must tell Azure from now on, and for which we no longer must.
    """

    votes: Sequence[Vote] = ()
    early: Sequence[Given] = ()
    keys: Sequence[tuple[str, str]] = ()
    checkpoint: tuple[str, str, str] | None = None
    events: Sequence[CloudEvent] = ()
    duties: Mapping[EventLife, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Received:
    """How full the share of votes is, and how many outcomes were left out for lack of space."""

    full: float = 0.0
    unpublished: int = 0


def seen(store: Store, key: str, event_key: str) -> bool:
    """Whether this message about this event was recorded before."""
    sql = "SELECT 1 FROM message_key WHERE key = ? AND event = ?"
    return store.connection.execute(sql, (hashed(key)[0], event_key)).fetchone() is not None


def receive(store: Store, receipt: Receipt, now: float, max_size: int = UNLIMITED) -> Received:
    """Record the message; the transport is acknowledged only after this is committed.

    In the same transaction, votes and keys stay within their share of *max_size*.
    """
    with store.joined() as db:
        db.executemany(
            "INSERT OR IGNORE INTO message_key(key, verified, event, at) VALUES (?, ?, ?, ?)",
            [(*hashed(key), event, now) for key, event in receipt.keys],
        )
        db.executemany(
            "INSERT INTO early(event, body, at) VALUES (?, ?, ?)",
            [(one.approval.event_key, _written(one), one.at.timestamp()) for one in receipt.early],
        )
        if receipt.checkpoint:
            db.execute("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)", receipt.checkpoint)
        return _write(store, db, receipt, now, max_size)


def _write(
    store: Store, db: sqlite3.Connection, receipt: Receipt, now: float, max_size: int
) -> Received:
    _write_votes(store, db, receipt, now)
    full = bound_votes(store, max_size)
    return Received(full, _publish(store, db, receipt.events, now, max_size))


def _publish(
    store: Store, db: sqlite3.Connection, events: Sequence[CloudEvent], now: float, max_size: int
) -> int:
    """Add the outcomes, except those of unverified votes when their share is full; count these."""
    unverified = [event for event in events if is_of_unverified(event)]
    if not unverified or has_room_for_outcomes(db, max_size):
        store.add(db, events, now)
        return 0
    store.add(db, [event for event in events if event not in unverified], now)
    return len(unverified)


def _write_votes(store: Store, db: sqlite3.Connection, receipt: Receipt, now: float) -> None:
    """Write one vote per event, life, approver and resource; a later one replaces it."""
    db.executemany(
        """INSERT INTO vote VALUES (?, ?, ?, ?, ?)
        ON CONFLICT(event, life, approver, resource) DO UPDATE SET body = excluded.body""",
        [(*_place(vote), _written(vote, _announced(store, vote.about))) for vote in receipt.votes],
    )
    for vote in receipt.votes:
        kept = store.counted.get((vote.event_key, vote.life))
        if kept is not None and kept.votes.get(vote.voter) is not vote:
            kept.put(vote)
    for event, due in receipt.duties.items():
        if due:
            db.execute("INSERT OR IGNORE INTO grants VALUES (?, ?, 'due', ?)", (*event, now))
        else:
            withdraw_in(db, event)


def _place(vote: Vote) -> tuple[str, int, str, str]:
    return vote.event_key, vote.life, *vote.voter


def _announced(store: Store, about: Announced) -> int:
    """The number of what a vote is about: written once, however many votes and VMs there are."""
    if about not in store.counted:
        db, body = store.connection, _JSON.encode(about)
        db.execute("INSERT OR IGNORE INTO announced(body) VALUES (?)", (body,))
        found = db.execute("SELECT id FROM announced WHERE body = ?", (body,)).fetchone()
        store.counted[about] = found[0]
    return int(store.counted[about])


def _written(value: Vote | Given, about: int | None = None) -> str:
    return _JSON.encode(value if about is None else {**shallow(value), "about": about})


def votes(store: Store, event_key: str, life: int) -> list[Vote]:
    sql = "SELECT body FROM vote WHERE event = ? AND life = ? ORDER BY approver, resource"
    return _read_votes(store, sql, event_key, life)


def counted_votes(store: Store, known: Tracked, rules: Rules) -> CountedVotes:
    """The votes on a pending event, counted: read once, and kept up to date with what is written.

    It belongs to the journal's thread; do not keep it.
    """
    event = (known.event.key, known.life)
    kept: CountedVotes | None = store.counted.get(event)
    if kept is None or kept.event != known.event or kept.rules != rules:
        if len(store.counted) >= MOST_COUNTED:
            store.counted.clear()
        kept = store.counted[event] = CountedVotes(known.event, rules, votes(store, *event))
    return kept


def is_crowded(store: Store, vote: Vote, most: int, max_size: int = UNLIMITED) -> bool:
    """Whether the event has *most* unverified voters, or there is no space, and this is one more.

    A voter may always replace its own vote by one that is no longer.
    """
    read, place, body = store.connection.execute, _place(vote), _written(vote, _SOME)
    sql = "SELECT body FROM vote WHERE event = ? AND life = ? AND approver = ? AND resource = ?"
    if (standing := read(sql, place).fetchone()) and len(body) <= len(standing[0]):
        return False
    if not standing and _unverified(store, place[:2]) >= most:
        return True
    return not has_room(store.connection, [body], max_size)


def _unverified(store: Store, event: EventLife) -> int:
    if (kept := store.counted.get(event)) is not None:
        return int(kept.unverified)
    sql = """SELECT COUNT(*) FROM vote
        WHERE event = ? AND life = ? AND NOT json_extract(body, '$.verified')"""
    return int(store.connection.execute(sql, event).fetchone()[0])


def is_waiting_crowded(store: Store, given: Given, most: int, max_size: int = UNLIMITED) -> bool:
    """Whether *most* approvals of unverified senders wait, or there is no space for this one."""
    sql = "SELECT COUNT(*) FROM early WHERE json_extract(body, '$.identity') IS NULL"
    if store.connection.execute(sql).fetchone()[0] >= most:
        return True
    return not has_room(store.connection, [_written(given)], max_size)


def votes_ever(store: Store, event_key: str, most: int = UNLIMITED) -> list[Vote]:
    """The votes on an event, the latest life first, for display."""
    sql = "SELECT body FROM vote WHERE event = ? ORDER BY life DESC, approver, resource LIMIT ?"
    return _read_votes(store, sql, event_key, most)


def votes_lately(store: Store, limit: int) -> list[Vote]:
    """The newest votes on all events, the latest first."""
    sql = "SELECT body FROM vote ORDER BY json_extract(body, '$.at') DESC LIMIT ?"
    return _read_votes(store, sql, limit)


def said_by(store: Store, approval_id: str) -> list[Vote]:
    """The votes that came from one approval, by the id that people know."""
    cast = _read_votes(store, "SELECT body FROM vote ORDER BY event, life")
    return [vote for vote in cast if vote.approval == approval_id]


def _read_votes(store: Store, sql: str, *values: object) -> list[Vote]:
    """The votes; those about the same state share one `Announced`."""
    known: dict[int, Announced] = {}
    found = []
    for (text,) in store.connection.execute(sql, values):
        body = json.loads(text)
        about = body.pop("about")
        if isinstance(about, dict):  # written by an earlier version
            found.append(_read_vote(body, _read_about(about)))
            continue
        if about not in known:
            told = store.connection.execute("SELECT body FROM announced WHERE id = ?", (about,))
            known[about] = _read_about(json.loads(told.fetchone()[0]))
        found.append(_read_vote(body, known[about]))
    return found


def _read_about(body: dict[str, Any]) -> Announced:
    return Announced(body["event_type"], tuple(body["resources"]), moment(body["not_before"]))


def _read_vote(body: dict[str, Any], about: Announced) -> Vote:
    for name in ("at", "signed_at", "recorded"):
        body[name] = moment(body.get(name))
    return Vote(**body, about=about)


def end_wait(  # noqa: PLR0917  the intake passes what belongs together
    store: Store,
    number: int,
    receipt: Receipt,
    now: float,
    stray: Given | None = None,
    max_size: int = UNLIMITED,
) -> Received:
    """Note that an early approval has become a vote, or has waited long enough.

    Messages from unverified senders about unknown events are forgotten: they could be endless.
    """
    with store.joined() as db:
        db.execute("DELETE FROM early WHERE id = ?", (number,))
        if stray is not None and stray.identity is None:
            name = (hashed(stray.seen_as)[0], stray.approval.event_key)
            db.execute("DELETE FROM message_key WHERE key = ? AND event = ?", name)
        return _write(store, db, receipt, now, max_size)


def lapse(
    store: Store, gone: Sequence[Vote], events: Sequence[CloudEvent], now: float, *, still_due: bool
) -> None:
    """Delete votes on an event that has changed, and their duty unless other votes are enough."""
    with store.transaction(keeps_state=True) as db:
        sql = "DELETE FROM vote WHERE event = ? AND life = ? AND approver = ? AND resource = ?"
        db.executemany(sql, [_place(vote) for vote in gone])
        for vote in () if still_due else gone:
            withdraw_in(db, (vote.event_key, vote.life))
            store.counted.pop((vote.event_key, vote.life), None)
        store.add(db, events, now)


def forget(store: Store, before: datetime) -> None:
    """Delete what belongs to events that ended before then, or were never seen."""
    limit = before.astimezone(UTC).timestamp()
    needed = """SELECT key FROM tracked UNION SELECT key FROM ended WHERE at >= ?
        UNION SELECT event FROM drill"""
    old = "FROM drill WHERE open = 0 AND at < ?"
    if store.connection.execute(f"SELECT 1 {old}", (limit,)).fetchone():
        with store.transaction() as db:
            db.execute(f"DELETE {old}", (limit,))
    store.counted.clear()
    with store.transaction(keeps_state=True) as db:
        for table in ("message_key", "grants", "reminded"):
            db.execute(
                f"DELETE FROM {table} WHERE at < ? AND event NOT IN ({needed})", (limit, limit)
            )
        kept = f"{needed} UNION SELECT event FROM message_key UNION SELECT event FROM grants"
        db.execute(f"DELETE FROM vote WHERE event NOT IN ({kept})", (limit,))
        needed = "SELECT json_extract(body, '$.about') FROM vote"
        db.execute(f"DELETE FROM announced WHERE id NOT IN ({needed})")


def early(store: Store) -> list[tuple[int, Given]]:
    """Approvals that still wait for their event, with their numbers, in the order of arrival."""
    rows = store.connection.execute("SELECT id, body FROM early ORDER BY id")
    return [(number, _read_given(json.loads(body))) for number, body in rows]


def early_one(store: Store, number: int) -> Given:
    sql = "SELECT body FROM early WHERE id = ?"
    return _read_given(json.loads(store.connection.execute(sql, (number,)).fetchone()[0]))


def waiting(store: Store) -> list[tuple[int, str, datetime]]:
    """The number, event and time of all waiting approvals, without reading their bodies."""
    rows = store.connection.execute("SELECT id, event, at FROM early ORDER BY id")
    return [(number, event, datetime.fromtimestamp(at, UTC)) for number, event, at in rows]


def _read_given(body: dict[str, Any]) -> Given:
    approval = Approval(**body.pop("approval"))
    for name in ("at", "signed_at", "recorded"):
        body[name] = moment(body.get(name))
    return Given(approval, **body)
