"""The guarantees about the truth: what is told happened, and what a bridge saw is told."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from soak.ledger import Ledger, Look, Row
from soak.rulings import Breach, moment, torn
from support.judge import ENDS, RANKS, digest_told, state_told, state_true

Json = dict[str, Any]
PROMPT = 4.0
"""A process that asks again later than this may not have read the answer before."""


def _stories(ledger: Ledger) -> dict[tuple[str, str], list[Row]]:
    """The transitions of each bridge and event, oldest first."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in sorted(ledger.rows, key=lambda row: (row.generation, row.seq)):
        if row.kind in RANKS:
            found[row.bridge, row.key].append(row)
    return found


def truthful(ledger: Ledger) -> Iterator[Breach]:
    """Each transition describes something that happened, in the state that it had then."""
    happened = defaultdict(set)
    for record in ledger.truth:
        if record["what"] in RANKS:
            happened[record["eventId"]].add(record["what"])
        if record["what"] in {"scheduled", "updated"}:
            happened[record["eventId"]].add(digest_told(state_true(record)))
    for row in ledger.rows:
        if row.kind not in RANKS or row.kind in ENDS:
            continue
        data = row.envelope["data"]
        mark = row.kind if row.kind == "started" else digest_told(state_told(data))
        if mark not in happened[row.key]:
            yield Breach(f"{row.bridge} told of {row.key} as {row.kind}, and that did not happen")
        if data["rank"] != RANKS[row.kind]:
            yield Breach(f"{row.kind} of {row.key} has rank {data['rank']}")


def certain(looks: Sequence[Look]) -> Iterator[Look]:
    """The documents that a bridge certainly recorded: the same process soon asked again."""
    by_bridge = defaultdict(list)
    for look in looks:
        by_bridge[look.bridge].append(look)
    for own in by_bridge.values():
        for look, after in pairwise(own):
            same = look.process == after.process and after.asked - look.asked < PROMPT
            if look.clean and same:
                yield look


def everything_seen_is_told(ledger: Ledger) -> Iterator[Breach]:
    stories, said = _stories(ledger), set()
    told = {key: {_mark(row) for row in rows} for key, rows in stories.items()}
    for look in certain(ledger.looks):
        for event in look.document:
            mark = "started" if event["status"] == "Started" else event["state"]
            place = (look.bridge, event["key"], mark)
            if mark not in told.get(place[:2], ()) and place not in said:
                said.add(place)
                what = f"{event['key']} as {event['status']}"
                yield Breach(f"{look.bridge} saw {what} and did not tell it", look.asked)


def _mark(row: Row) -> str:
    state: str = row.envelope["data"]["state"]
    return state if row.kind in {"scheduled", "updated"} else row.kind


def true_ends(ledger: Ledger) -> Iterator[Breach]:
    """One end for each event that a bridge told of: the real one, as far as it can know."""
    real = {each["eventId"]: each for each in ledger.truth if each["what"] in ENDS}
    started = {
        (look.bridge, event["key"])
        for look in certain(ledger.looks)
        for event in look.document
        if event["status"] == "Started"
    }
    for (bridge, key), rows in _stories(ledger).items():
        ends = sorted({row.kind for row in rows if row.kind in ENDS})
        truth = real.get(key)
        if truth is None:
            if ends:
                yield Breach(f"{bridge} told that {key} was {ends}, and it is not over")
        elif ends != [truth["what"]] and not _excused(ledger, bridge, truth, ends, started):
            yield Breach(f"{key} was {truth['what']}, and {bridge} told {ends or 'nothing'}")


def _excused(
    ledger: Ledger, bridge: str, truth: Json, ends: list[str], started: set[tuple[str, str]]
) -> bool:
    """Whether the bridge could not know.

    It never saw the start, or the end was between its last look before it lost its journal and its
    first look after.
    """
    if ends == ["canceled"] and truth["what"] == "completed":
        return truth["approved"] and (bridge, truth["eventId"]) not in started
    at, looks = moment(ledger, truth["at"]), _moments(ledger, bridge)
    return not ends and any(
        max((look for look in looks if look < fault.begun), default=0.0) <= at
        and at <= min((look for look in looks if look > fault.ended), default=ledger.ended)
        for fault in torn(ledger, bridge)
    )


def _moments(ledger: Ledger, bridge: str) -> list[float]:
    return [look.asked for look in certain(ledger.looks) if look.bridge == bridge]
