"""The recipe of ids and attribute values, against the vectors that we publish."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world import EVENT_ID, INSTANCE, NOON, scheduled_event

from bridge.approvals.outcomes import Cause, Outcome, outcome
from bridge.core import messages
from bridge.core.cloudevent import PREFIX
from bridge.core.ids import NAMESPACE, digest, identify, number, safe_id, safe_name, timestamp
from bridge.core.model import Instance, parse_time
from bridge.core.observer import Observer
from bridge.core.state import Tracked, Transition

VECTORS = json.loads(
    (Path(__file__).parents[3] / "schemas" / "ids.v1.json").read_text(encoding="utf-8")
)
SAFE = re.compile(r"[A-Za-z0-9\-._~/:()]+")


def vectors(part: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", VECTORS[part]["vectors"], ids=str)


def short(kind: str) -> str:
    return kind.removeprefix(PREFIX).removesuffix(".v1")


@vectors("ids")
def test_an_id_is_a_uuid_of_its_parts(vector):
    joined = VECTORS["separator"].join(vector["parts"])

    assert vector["id"] == str(uuid5(UUID(VECTORS["namespace"]), joined))
    assert vector["id"] == identify(*vector["parts"])
    assert str(NAMESPACE) == VECTORS["namespace"]


def test_there_is_a_vector_for_each_type():
    assert {short(vector["type"]) for vector in VECTORS["ids"]["vectors"]} == set(messages.KINDS)


@vectors("states")
def test_the_digest_of_a_state_is_as_published(vector):
    state = vector["state"]
    event = scheduled_event(
        not_before=parse_time(state["notBefore"]),
        resources=tuple(state["resources"]),
        event_type=state["eventType"],
        description=state["description"],
        duration=state["durationInSeconds"],
    )

    assert hashlib.sha256(vector["text"].encode()).hexdigest() == vector["sha256"]
    assert digest(event) == vector["sha256"]


@vectors("ids")
def test_messages_have_the_published_ids(vector):
    assert _written(short(vector["type"]), vector["parts"]).id == vector["id"]


def _written(kind: Any, parts: list[str]) -> messages.CloudEvent:
    if kind in {"scheduled", "updated", "started", "completed", "canceled"}:
        event_id, _, life, *more = parts
        event, repeat = scheduled_event(event_id.lower()), 0
        if more:
            event, repeat = _state(more[0]), int(more[1])
        happened = Transition(kind, event, int(life), None, repeat=repeat)
        return messages.transition(happened, Observer(), NOON, 1)
    if kind.startswith("approval."):
        return _outcome(kind.removeprefix("approval."), parts)
    identity, _, began = parts
    observer = Observer(Instance(vm_id=identity if identity == INSTANCE.vm_id else None), identity)
    moment = datetime.fromisoformat(began).replace(microsecond=999999)
    if kind == "bridge.audited":
        return messages.audited("x", observer, moment, actor="", via="", detail={})
    about = messages.SourceReport(moment, None, None, None, "0")
    return messages.source(kind.removeprefix("source."), about, observer, NOON)


def _outcome(became: Any, parts: list[str]) -> messages.CloudEvent:
    event_id, _, name, *reason = parts
    known = Tracked(scheduled_event(event_id.lower()), life=int(name) if not reason else 1)
    if became == "due":
        name, reason = reason[0], []
    told = Outcome(
        became,
        None if event_id == "-" else event_id,
        Cause("a-1", name, "approve", None, "bus"),
        known,
        reason="".join(reason) or None,
    )
    return outcome(told, Observer(), NOON)


def _state(sha256: str):
    [state] = [v["state"] for v in VECTORS["states"]["vectors"] if v["sha256"] == sha256]
    return scheduled_event(
        EVENT_ID.lower(),
        not_before=parse_time(state["notBefore"]),
        resources=tuple(state["resources"]),
        event_type=state["eventType"],
        description=state["description"],
        duration=state["durationInSeconds"],
    )


@vectors("names")
def test_names_are_as_published(vector):
    assert safe_name(vector["original"]) == vector["attribute"]


@vectors("subjects")
def test_subjects_are_as_published(vector):
    assert safe_id(vector["original"]) == vector["attribute"]


@given(st.text(min_size=1))
def test_a_name_keeps_to_the_safe_alphabet_and_safe_ones_stay(name: str):
    safe = safe_name(name)

    assert SAFE.fullmatch(safe)
    assert safe_name(safe) == safe
    assert (safe == name) == bool(SAFE.fullmatch(name))


@given(st.text(st.characters(), min_size=1))
def test_an_id_fits_into_an_attribute_and_a_topic_level(value: str):
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", safe_id(value))


def test_names_that_are_equal_after_cleaning_stay_distinct():
    assert len({safe_name(name) for name in ("a b", "a%b", "a_b", "aéb", "a\ud800b")}) == 5


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 15, 12, 0, tzinfo=UTC), "2026-11-15T12:00:00Z"),
        (datetime(2026, 11, 15, 12, 0, 0, 250000, tzinfo=UTC), "2026-11-15T12:00:00.250Z"),
        (datetime(2026, 11, 15, 12, 0, 0, 999, tzinfo=UTC), "2026-11-15T12:00:00Z"),
        (
            datetime(2026, 11, 15, 14, 0, tzinfo=timezone(timedelta(hours=2))),
            "2026-11-15T12:00:00Z",
        ),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_in_utc_with_milliseconds_only_if_not_zero(moment, text):
    assert timestamp(moment) == text


@pytest.mark.parametrize(
    ("value", "written"), [(5, "5"), (5.0, "5"), (0.5, "0.5"), (-0.0, "0"), (None, "null")], ids=str
)
def test_equal_numbers_are_written_the_same_way(value, written):
    assert json.dumps(number(value)) == written
