"""The guarantees about deliveries: each owed CloudEvent, in order, unchanged, without invention."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any
from uuid import uuid5

from soak.ledger import Delivery, Ledger, Row, digest_of_bytes, digest_of_json
from soak.rulings import Breach, duplicates, moment, rows_by_id
from support.judge import NAMESPACE, RANKS, digest_told, state_told

Json = dict[str, Any]


def arrived(ledger: Ledger) -> Iterator[Breach]:
    """Every row is at every sink that wants it, unless it was lost with a journal that we tore."""
    excused = {tuple(each) for each in ledger.excused}
    for row, sink in missing(ledger):
        if (row.bridge, row.id) not in excused:
            what = f"{row.kind} of {row.key} from {row.bridge} never came to {sink}"
            yield Breach(what, moment(ledger, row.envelope["time"]))


def missing(ledger: Ledger) -> Iterator[tuple[Row, str]]:
    """What never came to a sink that wants it."""
    there = {(each.sink, each.bridge, each.id) for each in ledger.deliveries}
    for row in ledger.rows:
        for sink, only in ledger.sinks.items():
            if wanted(row, only) and (sink, row.bridge, row.id) not in there:
                yield row, sink


def wanted(row: Row, only: Json) -> bool:
    """Whether a sink with this filter gets the row."""
    if not any(fnmatchcase(row.type, glob) for glob in only.get("types", ["*"])):
        return False
    types = only.get("event_types")
    return types is None or row.envelope["data"].get("eventType") in types


def nothing_foreign(ledger: Ledger) -> Iterator[Breach]:
    """Everything that arrived is in the sender's journal, with the same bytes."""
    rows = rows_by_id(ledger)
    digests = {place: set().union(*map(_digests, found)) for place, found in rows.items()}
    for each in ledger.deliveries:
        place = (each.bridge, each.id)
        if place not in rows:
            yield Breach(f"{each.sink} got {each.id}, which {each.bridge} never issued", each.at)
        elif each.digest not in digests[place]:
            kind = rows[place][0].kind
            yield Breach(f"{each.sink} got other bytes for {kind} {each.id}", each.at)


def one_cause_one_id(ledger: Ledger) -> Iterator[Breach]:
    """Ids of transitions follow the recipe, and no id stands for two causes."""
    for (bridge, name), found in rows_by_id(ledger).items():
        causes = {(row.type, row.key) for row in found}
        if len(causes) > 1:
            yield Breach(f"{bridge} used the id {name} for {sorted(causes)}")
        for row in found:
            if row.kind in RANKS and row.id != by_the_recipe(row):
                yield Breach(f"{row.kind} of {row.key} should be {by_the_recipe(row)}, not {name}")
    seen: dict[tuple[str, int, str], set[int]] = defaultdict(set)
    for row in ledger.rows:
        if row.seq in seen[row.bridge, row.generation, row.id]:
            yield Breach(f"{row.bridge} has {row.id} twice in one journal")
        seen[row.bridge, row.generation, row.id].add(row.seq)


def by_the_recipe(row: Row) -> str:
    data = row.envelope["data"]
    parts = [data["eventId"], row.kind, str(data["life"])]
    if row.kind == "updated":
        parts += [digest_told(state_told(data)), "0"]
    return str(uuid5(NAMESPACE, "\x1f".join(parts)))


def in_order(ledger: Ledger) -> Iterator[Breach]:
    """The first deliveries of each scheduled event follow the order of the sender's journal."""
    rows, told, seen = rows_by_id(ledger), defaultdict(list), set()
    for each in ledger.deliveries:
        name = (each.sink, each.bridge, each.id)
        if name in seen or name[1:] not in rows:
            continue
        seen.add(name)
        row = _source(rows[name[1:]], each)
        told[each.sink, each.bridge, row.key].append((row.generation, row.seq, each.at))
    for (sink, bridge, key), found in told.items():
        for before, after in pairwise(found):
            if after[:2] < before[:2]:
                what = f"{after[:2]} after {before[:2]}"
                yield Breach(f"{sink} got {key} from {bridge} out of order: {what}", after[2])


def _source(rows: Sequence[Row], delivery: Delivery) -> Row:
    """The row that was delivered: of the first journal that has these bytes."""
    fitting = [row for row in rows if delivery.digest in _digests(row)]
    return min(fitting or rows, key=lambda row: row.generation)


def _digests(row: Row) -> set[str]:
    return {digest_of_bytes(row.body.encode()), digest_of_json(row.envelope)}


def explained_duplicates(ledger: Ledger) -> Iterator[Breach]:
    for each, before, fault in duplicates(ledger):
        if fault is None:
            after = f"{each.at - before:.1f} s after the first"
            yield Breach(f"{each.sink} got {each.id} from {each.bridge} again, {after}", each.at)
