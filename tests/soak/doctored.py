"""A small ledger in which everything is right, for tests that doctor it."""

import json
from typing import Any
from uuid import uuid5

from soak.judge import judge
from soak.ledger import (
    Delivery,
    Final,
    Ledger,
    Look,
    Played,
    Post,
    Row,
    Sample,
    Told,
    digest_of_bytes,
    digest_of_json,
)
from soak.settings import DRAINED, judged
from support.judge import NAMESPACE, RANKS, digest_told, state_told

Json = dict[str, Any]
EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
VM = "vm-0"
STARTED = "2026-11-17T04:00:00+00:00"
STATE: Json = {
    "eventId": EVENT,
    "eventType": "Reboot",
    "resources": ["vm-0", "vm-1"],
    "notBefore": "2026-11-17T05:00:00Z",
    "description": "Virtual machine is going to be restarted.",
    "durationInSeconds": -1,
}
LATER = {**STATE, "notBefore": "2026-11-17T06:00:00Z"}
VOTE: Json = {
    "approver": "orders",
    "via": "bus",
    "decision": "approve",
    "verified": False,
    "dry_run": False,
    "at": "2026-11-17T04:00:05+00:00",
    "about": {
        "event_type": "Reboot",
        "resources": ["vm-0", "vm-1"],
        "not_before": "2026-11-17T05:00:00+00:00",
    },
}


def at(second: float) -> str:
    return f"2026-11-17T04:00:{second:06.3f}Z"


def row(seq: int, kind: str, state: Json = STATE, **more: Any) -> Row:
    """A transition of the event, under the id of the recipe."""
    named = digest_told(state_told(state))
    parts = [EVENT, kind, "1", *([named, "0"] if kind == "updated" else [])]
    name = str(uuid5(NAMESPACE, "\x1f".join(parts)))
    data = {**state, "life": 1, "rank": RANKS[kind], "state": named}
    body = json.dumps({"id": name, "observer": VM, "time": at(seq), "data": data})
    usual: Json = {"bridge": VM, "generation": 0, "seq": seq, "id": name, "key": EVENT}
    usual |= {"type": f"azure.scheduledevents.{kind}.v1", "body": body}
    return Row(**{**usual, **more})


def delivered(row: Row, sink: str, moment: float) -> Delivery:
    if sink == "bus":
        digest = digest_of_json(row.envelope)
        return Delivery(sink, row.bridge, row.id, moment, digest, "json")
    return Delivery(sink, row.bridge, row.id, moment, digest_of_bytes(row.body.encode()))


def record(second: float, what: str, state: Json = STATE, **more: Any) -> Json:
    written = state["notBefore"].replace("Z", ".000Z")
    return {"at": at(second), "what": what, **state, "notBefore": written, **more}


def post(second: float, *votes: Json, **more: Any) -> Post:
    """As it arrives, after it was marked half a second before."""
    event = {
        "status": "Scheduled",
        "event_type": "Reboot",
        "resources": ["vm-0", "vm-1"],
        "not_before": "2026-11-17T05:00:00+00:00",
    }
    past = [{**event, "since": "2026-11-17T04:00:01+00:00", "digest": "d"}]
    marked = 1794888000.0 + second - 0.5
    usual: Json = {
        "event": {"event": event, "past": past, "missing_since": None, "life": 1},
        "mark": ["asked", marked],
        "votes": list(votes),
    }
    return Post(VM, second, {EVENT: {**usual, **more}})


def enough() -> list[Json]:
    return [{**VOTE, "resource": vm} for vm in ("vm-0", "vm-1")]


def ledger() -> Ledger:
    """One event, postponed, approved, started and completed, told by one bridge to all its sinks."""
    rows = [row(1, "scheduled"), row(2, "updated", LATER)]
    rows += [row(3, "started", LATER), row(4, "completed", LATER)]
    sinks: dict[str, Json] = {name: {} for name in ("bus", "floor", "hook", "siem", "archive")}
    made = [delivered(each, sink, each.seq * 10.0) for each in rows for sink in sinks]
    truth = [record(1, "scheduled"), record(2, "updated", LATER)]
    truth.append({"at": at(6), "what": "approval", "via": "POST", "released": [EVENT]})
    truth[-1]["status"] = 200
    truth += [record(6, "started", LATER), record(40, "completed", LATER, approved=True)]
    shown = {"key": EVENT, "status": "Scheduled", "state": rows[1].envelope["data"]["state"]}
    looks = [Look(VM, 1, moment, clean=True, document=[shown]) for moment in (20.0, 20.5)]
    return Ledger(
        seed=1, seconds=60, started=STARTED, faults_over=50, ended=55,
        rows=rows, deliveries=made, truth=truth, looks=looks, posts=[post(6, *enough())],
        stories=[Told("story-1", "approved", EVENT, ["vm-0", "vm-1"], "granted", 5.0, True)],
        finals=[Final(VM, calm_after=1.0, exit_code=0, grants={EVENT: "granted"})],
        samples=[Sample(VM, 1, second, 60_000, 40, 8, True) for second in (5.0, 50.0)],
        sinks={**sinks, "drain": DRAINED}, rules=judged(),
    )  # fmt: skip


def fault(kind: str, target: str, begun: float, ended: float) -> Played:
    return Played(kind, target, begun, ended)


def said(doctored: Ledger) -> list[str]:
    """The breaches that the judge finds, in words."""
    return [breach.text for breach in judge(doctored)]
