"""What must be true in every state, by rules that share no code with the bridge.

`JournalOracle` reads the tables of a journal and counts votes in the simplest way. What a message
really was, and which state its sender saw, is known from the world.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from model.process import Process
from model.world import GONE, STARTED, Message, State, World
from support.bridge import Bridge
from support.journal_oracle import HARSHNESS, JournalOracle

from bridge.core.model import ScheduledEvent

TAKEOVER = timedelta(seconds=5)
Rows = list[list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Rules:
    """The configuration of approvals, as the oracle reads it."""

    written: Mapping[str, Any]

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "Rules":
        return cls({"require": "any", "allow": [], **written})

    def allows(self, oracle: JournalOracle, vm: str, now: datetime) -> bool:
        """Whether the votes allow a POST, if it is marked."""
        return replace(oracle, mark="asked").objections(vm, dict(self.written), now) == []


# --- I1 and I4: what is POSTed is allowed, and never a drill -----------------------------------


def post_problems(
    world: World,
    db: sqlite3.Connection,
    bridge: Bridge,
    ids: Sequence[str],
    rules: Rules,
    now: datetime,
) -> list[str]:
    """Why the StartRequest that leaves now must not: the journal is as the last look saw it."""
    vm, found = bridge.runtime.identity.vm_name or "", list[str]()
    for name in ids:
        if name == world.drill:
            found.append(f"{vm} POSTs {name}, which is a drill")
            continue
        oracle = JournalOracle.of(db, name)
        found += [
            f"{vm} POSTs {name}: {why}" for why in oracle.objections(vm, dict(rules.written), now)
        ]
        if oracle.event is not None and not _our_turn(oracle, rules, vm, now):
            found.append(f"{vm} POSTs {name} before its turn")
        found += [f"{vm} POSTs {name}: {why}" for why in _untrue(world, oracle)]
    return found


def _our_turn(oracle: JournalOracle, rules: Rules, vm: str, now: datetime) -> bool:
    """Whether the votes were enough when the turn of this VM began; a local one is its own."""
    assert oracle.event is not None
    place = oracle.event["event"]["resources"].index(vm)
    if place == 0 or any(vote["local"] for vote in oracle.votes):
        return True
    then = now - place * TAKEOVER
    old = [vote for vote in oracle.votes if datetime.fromisoformat(vote["at"]) <= then]
    return rules.allows(replace(oracle, votes=old), vm, now)


def _untrue(world: World, oracle: JournalOracle) -> list[str]:
    """Votes that count, and are forged or about a state that was better than the present one."""
    found = []
    for vote in oracle.votes:
        message = world.message(vote["approval"]) if vote["via"] != "auto" else None
        if message is None or vote["decision"] != "approve":
            continue
        if message.forged:
            found.append(f"{message.name} is forged, and counts")
        assert oracle.event is not None
        if message.names and _is_worse(world, message, oracle.event["event"]):
            found.append(f"{message.name} was about a better state, and counts")
    return found


def _is_worse(world: World, message: Message, now: Mapping[str, Any]) -> bool:
    saw = world.events[message.event][message.saw]
    return (
        not set(now["resources"]) <= set(saw.resources)
        or HARSHNESS.index(now["event_type"]) > HARSHNESS.index(saw.event_type)
        or (
            saw.not_before is not None
            and datetime.fromisoformat(now["not_before"]) < saw.not_before
        )
    )


def held_problems(world: World, state: State, at: int, ids: Sequence[str]) -> list[str]:
    """A hold that was acknowledged, and that nobody ends in this world, is in force."""
    found = []
    for message, inbox in zip(world.messages, state.sides[at].inbox, strict=True):
        ends = [one for one in world.messages if one.who == message.who and one.what != "hold"]
        if message.what == "hold" and message.event in ids and inbox == "taken" and not ends:
            found.append(f"{world.vms[at]} POSTs {message.event} in spite of {message.name}")
    return found


# --- I3: a message that is received again changes nothing --------------------------------------


def rows_of(db: sqlite3.Connection, message: str) -> Rows:
    """Everything that a message has caused; the last part is what waits for its event."""
    asked = (
        "SELECT * FROM vote WHERE json_extract(body, '$.approval') = ?",
        "SELECT event, life, state FROM grants WHERE ? != ''",
        "SELECT id FROM outbox WHERE json_extract(body, '$.causationid') = ?",
        "SELECT body FROM early WHERE ? != ''",
    )
    return [db.execute(sql, (message,)).fetchall() for sql in asked]


def repeat_problems(db: sqlite3.Connection, message: str, before: Rows) -> list[str]:
    if before[-1] or rows_of(db, message) == before:
        return []
    return [f"{message} was received before, and changes the journal again"]


# --- I2: what is allowed is POSTed in time, or published as failed -----------------------------


def quiet_problems(
    world: World, state: State, processes: Sequence[Process], db: sqlite3.Connection
) -> list[str]:
    """No bridge has anything to do: everything that is allowed has been POSTed."""
    found, now = list[str](), world.now(state.time)
    for vm, side in zip(world.vms, state.sides, strict=True):
        process = processes[side.process]
        db.deserialize(process.image)
        rules = Rules.of(world.rules[side.rules])
        for place, name in enumerate(world.names):
            oracle = JournalOracle.of(db, name)
            if state.azure.stages[place] < 0 or oracle.event is None or oracle.mark == "granted":
                continue
            waits = _waits(process, (name, oracle.event["life"]), now)
            allowed = rules.allows(oracle, vm, now) and _our_turn(oracle, rules, vm, now)
            if allowed and not waits:
                found.append(f"{vm} is allowed to POST {name}, and does not")
    return found


def _waits(process: Process, event: tuple[str, int], now: datetime) -> bool:
    """Whether the bridge waits before it tries the StartRequest again."""
    tries = process.memory.service.decisions.start_requests._tries
    return tries.get(event, (0, 0.0))[1] > now.timestamp()


def final_problems(
    world: World, state: State, processes: Sequence[Process], db: sqlite3.Connection
) -> list[str]:
    """Nothing can happen any more: what was due was granted, by somebody, or published as failed."""
    found = []
    for vm, side in zip(world.vms, state.sides, strict=True):
        db.deserialize(processes[side.process].image)
        rules = Rules.of(world.rules[side.rules])
        for place, name in enumerate(world.names):
            if state.azure.stages[place] not in {STARTED, GONE}:
                continue
            if not _was_due(world, db, rules, vm, name):
                continue
            if not (_failed(db, name) or _granted(db, name) or state.azure.accepted[place]):
                found.append(f"{vm} was due to POST {name}, and publishes nothing about it")
    return found


def _was_due(world: World, db: sqlite3.Connection, rules: Rules, vm: str, name: str) -> bool:
    """Whether the votes were enough when the event ended, on the VM that leads."""
    last = world.events[name][-1]
    if last.resources[0] != vm:
        return False
    rows = db.execute("SELECT body FROM vote WHERE event = ?", (name,)).fetchall()
    votes = [json.loads(body) for (body,) in rows]
    states = dict(db.execute("SELECT id, body FROM announced"))
    for vote in votes:
        vote["about"] = json.loads(states[vote["about"]])
    oracle = JournalOracle({"event": _plain(last), "missing_since": None}, "asked", votes)
    return rules.allows(oracle, vm, last.not_before or world.now(0))


def _plain(event: ScheduledEvent) -> dict[str, Any]:
    due = event.not_before.isoformat() if event.not_before else None
    return {
        "event_type": event.event_type,
        "status": event.status,
        "resources": list(event.resources),
        "not_before": due,
    }


def _granted(db: sqlite3.Connection, name: str) -> bool:
    sql = "SELECT 1 FROM grants WHERE event = ? AND state = 'granted'"
    return db.execute(sql, (name,)).fetchone() is not None


def _failed(db: sqlite3.Connection, name: str) -> bool:
    sql = "SELECT 1 FROM outbox WHERE key = ? AND type GLOB '*approval.failed.v1'"
    return db.execute(sql, (name,)).fetchone() is not None
