"""The guarantees about approvals: each is answered, and no POST is against policy."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from soak.ledger import Ledger, Post, Told
from soak.rulings import Breach, moment, torn
from support.journal_oracle import JournalOracle

Json = dict[str, Any]
OVER = {"it has started", "it is missing", "the event is not tracked", "it is not marked"}
"""What may become true between the last look and the arrival, because somebody else acted."""
_AROUND = 5.0


def approvals_answered(ledger: Ledger) -> Iterator[Breach]:
    """What was to be granted was POSTed or reported as failed; what was not, was not."""
    granted = _granted(ledger)
    failed = {row.key for row in ledger.rows if row.kind == "approval.failed"}
    for story in ledger.stories:
        at = granted.get(story.event)
        if not story.finished:
            yield Breach(f"{story.name} ({story.plot}, {story.event}) did not end", story.since)
        if story.expected == "granted" and at is None and story.event not in failed:
            yield Breach(f"{story.name}: {story.event} was approved, and never POSTed", story.since)
        if at is not None and _is_too_early(ledger, story, at):
            yield Breach(f"{story.name} ({story.plot}): {story.event} must not be POSTed", at)
    for final in ledger.finals:
        for event, state in final.grants.items():
            if state in {"due", "asked"}:
                yield Breach(f"{final.bridge} still has to tell Azure about {event}")


def _granted(ledger: Ledger) -> dict[str, float]:
    """When Azure first accepted a StartRequest for each event."""
    found: dict[str, float] = {}
    for record in ledger.truth:
        if record["what"] == "approval" and record.get("via") == "POST":
            for event in record["released"]:
                found.setdefault(event, moment(ledger, record["at"]))
    return found


def _is_too_early(ledger: Ledger, story: Told, at: float) -> bool:
    if story.expected == "any" or (story.expected == "granted" and story.plot != _RELEASED):
        return False
    if story.expected == "granted" and at >= story.since:
        return False
    return not (story.plot in {"held", _RELEASED} and _lost_holds(ledger, story, at))


_RELEASED = "held-and-released"


def _lost_holds(ledger: Ledger, story: Told, at: float) -> bool:
    """Holds are lost with a journal or a topic, until they are read or sent again."""
    faults = [fault for vm in story.resources for fault in torn(ledger, vm)]
    faults += [fault for fault in ledger.faults if fault.kind == "topic-made-anew"]
    return any(fault.begun <= at <= fault.ended + 3 * _AROUND for fault in faults)


def posts_allowed(ledger: Ledger) -> Iterator[Breach]:
    for post in ledger.posts:
        for event, journal in post.journals.items():
            why = objections(ledger, post, event, journal)
            if why:
                yield Breach(f"{post.bridge} POSTed {event}, but {' and '.join(why)}", post.at)


def objections(ledger: Ledger, post: Post, event: str, journal: Mapping[str, Any]) -> list[str]:
    """Why the votes did not allow it: neither as the journal was at the arrival nor at the mark."""
    now = _as_of(journal, post.bridge, ledger.rules)
    if not now:
        return []
    if set(now) <= OVER and _changed_meanwhile(ledger, event, post.at):
        return []
    then = _as_of(at_its_mark(journal), post.bridge, ledger.rules)
    return [why for why in then if why in now]


def _as_of(journal: Mapping[str, Any], vm: str, rules: Json) -> list[str]:
    mark = journal["mark"]
    votes = [
        vote for vote in journal["votes"] if vote["decision"] != "approve" or _may(vote, rules)
    ]
    oracle = JournalOracle(journal["event"], mark[0] if mark else None, votes)
    moments = [datetime.fromisoformat(vote["at"]) for vote in journal["votes"]]
    return oracle.objections(vm, rules, max(moments, default=datetime.fromtimestamp(0)))


def _may(vote: Json, rules: Json) -> bool:
    """Whether an entry lets this approver vote on this channel, with the proof that it asks for."""
    entries = [each for each in rules["allow"] if each["approver"] == vote["approver"]]
    return any(
        vote["via"] == entry["via"] and (vote["verified"] or not {"keys", "token"} & entry.keys())
        for entry in entries
    )


def at_its_mark(journal: Mapping[str, Any]) -> Json:
    """The event and the votes as they were when the request was marked."""
    event, mark = journal["event"], journal["mark"]
    if event is None or mark is None:
        return {**journal}
    states = [one for one in event["past"] if _time(one["since"]) <= mark[1]]
    told = {**event["event"]}
    if states:
        told |= {name: states[-1][name] for name in ("event_type", "resources", "not_before")}
    votes = [vote for vote in journal["votes"] if _time(vote["at"]) <= mark[1]]
    return {"event": {**event, "event": told}, "mark": mark, "votes": votes}


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _changed_meanwhile(ledger: Ledger, event: str, at: float) -> bool:
    """Whether the event started or ended just before the request arrived."""
    return any(
        record.get("eventId") == event
        and record["what"] in {"started", "completed", "canceled"}
        and at - _AROUND <= moment(ledger, record["at"]) <= at + 1
        for record in ledger.truth
    ) or any(
        record["what"] == "approval"
        and event in (record.get("released") or ())
        and at - _AROUND <= moment(ledger, record["at"]) <= at + 1
        for record in ledger.truth
    )
