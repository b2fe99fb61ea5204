"""Compares what the bridge wrote with what really happened; shares no code with what it checks.

`judge` returns a list of errors in sentences. It checks what the contract promises:

- a state in a document that the bridge certainly committed is published, and so is the end of
  every event that it certainly saw;
- nothing is published that did not happen, and no other end than the real one;
- each id follows from its content, and always stands for the same bytes;
- per scheduled event all files have the same CloudEvents in the same order, and a repetition
  comes immediately or not at all.

A document is certainly committed when the process that read it asks for another one: it commits
before it asks again. The last document before a kill may or may not be committed.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from support.bridge_process import Shown

from bridge.core.model import Document, ScheduledEvent

Json = dict[str, Any]
NAMESPACE = UUID("3a6e8a52-6f0b-5c7e-9d43-1b0c5f2a7e61")
PREFIX = "azure.scheduledevents."
RANKS = {"scheduled": 1, "updated": 1, "started": 2, "canceled": 3, "completed": 4}
ENDS = ("completed", "canceled")
COARSE = timedelta(seconds=2)
"""How far the bridge's "now" may be behind: it may be the answer's Date, in whole seconds."""


def judge(truth: Sequence[Json], shown: Sequence[Shown], files: Sequence[Path]) -> list[str]:
    """All errors; an empty list means that everything is correct."""
    if len(files) < 2:
        return [f"there should be two files, and there are {len(files)}"]
    return [
        *same_bytes(files),
        *in_order(files),
        *by_the_recipe(files[0]),
        *truthful(truth, files[0]),
        *complete(truth, shown, files[0]),
    ]


def bodies(path: Path) -> list[bytes]:
    """Complete lines only; an unfinished last line is an error of its own."""
    *whole, rest = path.read_bytes().split(b"\n")
    assert rest == b"", f"{path.name} ends in an unfinished line"
    return whole


def as_lines(envelopes: Iterable[Json], path: Path) -> Path:
    """CloudEvents from another transport, as a file sink would have written them."""
    path.write_text("".join(f"{json.dumps(each, sort_keys=True)}\n" for each in envelopes))
    return path


def lines(path: Path) -> list[Json]:
    return [json.loads(body) for body in bodies(path)]


def kind(cloudevent: Json) -> str:
    return cloudevent["type"].removeprefix(PREFIX).removesuffix(".v1")


def transitions(path: Path) -> list[Json]:
    return [each for each in lines(path) if kind(each) in RANKS]


def told(path: Path, *kinds: str) -> list[Json]:
    """The CloudEvents of these kinds, without repetitions and without a line that is unfinished.

    A bridge that runs may be writing one, and a killed one completes it when it starts again.
    """
    whole = map(json.loads, path.read_bytes().split(b"\n")[:-1])
    unique = {each["id"]: each for each in whole if kind(each) in kinds}
    return list(unique.values())


def same_bytes(files: Iterable[Path]) -> Iterator[str]:
    known: dict[str, bytes] = {}
    for path in files:
        for body in bodies(path):
            name = json.loads(body)["id"]
            if known.setdefault(name, body) != body:
                yield f"{path.name}: {name} is another text than before: {body!r}"


def in_order(files: Sequence[Path]) -> Iterator[str]:
    stories = [_stories(path) for path in files]
    for path, story in zip(files, stories, strict=True):
        for key, told_of_it in story.items():
            ids = [each["id"] for each in told_of_it]
            if len(set(ids)) < len(ids):
                yield f"{path.name}: {key} repeats what had been followed by something else"
            ranks = [RANKS[kind(each)] for each in told_of_it]
            if ranks != sorted(ranks):
                yield f"{path.name}: {key} is told as {[kind(each) for each in told_of_it]}"
        if story != stories[0]:
            odd = [key for key in story if story[key] != stories[0].get(key)]
            yield f"{path.name} and {files[0].name} differ: {odd or set(stories[0]) - set(story)}"


def _stories(path: Path) -> dict[str, list[Json]]:
    """The CloudEvents of each scheduled event; immediate repetitions count as one."""
    found: dict[str, list[Json]] = {}
    for each in transitions(path):
        found.setdefault(each["subject"], []).append(each)
    return {key: [one for one, _ in groupby(told_of_it)] for key, told_of_it in found.items()}


def by_the_recipe(path: Path, life: int = 1) -> Iterator[str]:
    for each in transitions(path):
        parts = [each["data"]["eventId"], kind(each), str(life)]
        if kind(each) == "updated":
            parts += [digest_told(state_told(each["data"])), "0"]
        expected = str(uuid5(NAMESPACE, "\x1f".join(parts)))
        if each["id"] != expected:
            yield f"{kind(each)} of {each['subject']} should be {expected}, not {each['id']}"


State = tuple[str | None, tuple[str, ...], str, str | None, float | None]


def digest_told(state: State) -> str:
    text = json.dumps(list(state), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def state_told(data: Json) -> State:
    names = tuple(sorted(set(data["resources"])))
    what = (data["eventType"], data["description"], data["durationInSeconds"])
    return (data["notBefore"], names, *what)


def state_true(record: Json) -> State:
    whole = record["notBefore"].replace(".000Z", "Z")
    return state_told({**record, "notBefore": whole})


def state_shown(event: ScheduledEvent) -> State:
    moment = event.not_before.strftime("%Y-%m-%dT%H:%M:%SZ") if event.not_before else None
    what = (event.event_type, event.description, event.duration)
    return (moment, tuple(sorted(set(event.resources))), *what)


def truthful(truth: Sequence[Json], path: Path) -> Iterator[str]:
    """Each CloudEvent describes something that had happened when it was published."""
    for each in transitions(path):
        if not any(_tells(each, record) for record in truth):
            yield f"{kind(each)} of {each['subject']} at {each['time']} is not true"
        if each["data"]["rank"] != RANKS[kind(each)]:
            yield f"{kind(each)} of {each['subject']} has rank {each['data']['rank']}"
    for key, told_of_it in _stories(path).items():
        kinds = [kind(each) for each in told_of_it]
        for each in told_of_it:
            guessed = kind(each) == "canceled" or "started" not in kinds
            if kind(each) in ENDS and guessed and not each["data"]["inferred"]:
                yield f"{kind(each)} of {key} was deduced, and says that it was watched"


def _tells(cloudevent: Json, record: Json) -> bool:
    what = kind(cloudevent)
    if record.get("eventId") != cloudevent["data"]["eventId"]:
        return False
    if moment(cloudevent["time"]) + COARSE < moment(record["at"]):
        return False
    if what in {"scheduled", "updated"}:
        seen = record["what"] in {"scheduled", "updated"}
        return seen and state_told(cloudevent["data"]) == state_true(record)
    return record["what"] == what


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def surely_taken_in(shown: Sequence[Shown]) -> list[Document]:
    return [one.document for one, after in pairwise(shown) if one.process == after.process]


def complete(truth: Sequence[Json], shown: Sequence[Shown], path: Path) -> Iterator[str]:
    """Everything that the bridge certainly saw is published, and every event has its real end."""
    sure = surely_taken_in(shown)
    stories = _stories(path)
    for document in sure:
        for event in document.events:
            yield from _said(event, stories.get(event.key, []))
    yield from _ended(truth, sure, stories)


def _said(event: ScheduledEvent, told_of_it: Sequence[Json]) -> Iterator[str]:
    kinds = {kind(each) for each in told_of_it}
    if event.status == "Started":
        if "started" not in kinds:
            yield f"{event.key} was seen Started, and that is not told"
        return
    if "scheduled" not in kinds:
        yield f"{event.key} was seen Scheduled, and that is not told"
    states = [state_told(e["data"]) for e in told_of_it if kind(e) in {"scheduled", "updated"}]
    if state_shown(event) not in states:
        yield f"{event.key} was seen as {state_shown(event)}, and that is not told"


def _ended(
    truth: Sequence[Json], sure: Sequence[Document], stories: dict[str, list[Json]]
) -> Iterator[str]:
    last = {event.key for event in sure[-1].events} if sure else set()
    for record in truth:
        key = record.get("eventId", "")
        if record["what"] not in ENDS or key in last or key not in stories:
            continue
        ends = [kind(each) for each in stories[key] if kind(each) in ENDS]
        if ends != [record["what"]]:
            yield f"{key} was {record['what']}, and told of its end is {ends or 'nothing'}"
    seen = {event.key for document in sure for event in document.events}
    for key in seen - set(stories):
        yield f"{key} was seen, and nothing is told of it"
