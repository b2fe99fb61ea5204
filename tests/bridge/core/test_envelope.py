"""Hostile or huge input still becomes a message that conforms and fits."""

import json
from dataclasses import replace
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st
from support.messages import ABOUT, check, told, transition_of
from support.world import ME, NOON, OBSERVER, World, as_azure_says, scheduled_event

from bridge.core import messages
from bridge.core.envelope import LIMIT
from bridge.core.model import parse_document, parse_instance
from bridge.core.observer import Observer
from bridge.core.state import Tracked, Transition

HOSTILE = 'nul \x00 \x1f \x7f \x85 \u2028 \ufffe "\\/ </script> %s {subject} \U0001f527 \ud800 ü'


def parsed(**fields: Any) -> Transition:
    """What Azure said, through JSON as bytes, as the bridge reads it."""
    entry = {**as_azure_says(scheduled_event()), **fields}
    payload = json.loads(json.dumps({"DocumentIncarnation": 1, "Events": [entry]}))
    [event] = parse_document(payload, api_version="2020-07-01").events
    return Transition("scheduled", event, 1, affected=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"EventId": HOSTILE},
        {"EventType": HOSTILE},
        {"Description": HOSTILE},
        {"Resources": [HOSTILE, ""]},
        {"ResourceType": HOSTILE, "EventSource": HOSTILE},
        {HOSTILE: {HOSTILE: [HOSTILE, float("nan"), float("inf"), 1e308]}},
        {"DurationInSeconds": float("-inf")},
    ],
    ids=["EventId", "EventType", "Description", "Resources", "texts", "extra", "infinite"],
)
def test_any_document_of_azure_becomes_a_valid_message(fields):
    check(told(parsed(**fields)))


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    data = check(told(parsed(Description="a \ud800 b", Strange={"\udc00": "\ud83d\udd27"})))

    assert data["description"] == "a \ufffd b"
    assert data["extra"] == {"Strange": {"\ufffd": "\U0001f527"}}


def test_endless_nesting_is_cut():
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    data = check(told(parsed(Deep=deep)))

    assert json.dumps(data["extra"]).count("[") < 70


def test_a_hostile_vm_stays_within_the_alphabet_and_is_itself_in_data():
    name = "vm \x00 \U0001f527 \ud800 /../#"
    compute = {"name": name, "subscriptionId": name, "resourceGroupName": name, "vmId": name}
    observer = Observer(parse_instance(json.loads(json.dumps({"compute": compute}))))

    data = check(told(parsed(), observer))

    assert data["observer"]["vm"] == name.replace("\ud800", "\ufffd")
    check(messages.source("snapshot", ABOUT, observer, NOON))


def test_text_from_operators_is_made_writable_too():
    made = messages.audited(
        HOSTILE, OBSERVER, NOON, actor=HOSTILE, via="http", detail={HOSTILE: float("nan")}
    )

    assert list(check(made)["detail"].values()) == [None]


def test_extra_is_dropped_first():
    data = check(told(transition_of("scheduled", extra={"Blob": "x" * 70000})))

    assert "extra" not in data
    assert data["description"] == scheduled_event().description
    assert "resourcesTruncated" not in data


@pytest.mark.parametrize("text", ["d", "\U0001f527", "\x00"], ids=["plain", "wide", "escaped"])
def test_a_long_description_is_cut_before_any_resource(text: str):
    names = tuple(f"vm-{n}" for n in range(500))
    data = check(told(transition_of("scheduled", description=text * 60000, resources=names)))

    assert data["description"] == text * 1024
    assert data["resources"] == list(names)


def test_a_description_that_fits_is_left_alone():
    assert (
        len(check(told(transition_of("scheduled", description="d" * 60000)))["description"])
        == 60000
    )


def test_resources_that_do_not_fit_are_counted():
    names = tuple(f"scale-set-of-the-shop_{n}" for n in range(5000))
    data = check(told(transition_of("scheduled", resources=names)))

    assert 500 < len(data["resources"]) == 5000 - data["resourcesTruncated"]
    assert data["resources"] == list(names[: len(data["resources"])])
    assert data["description"] == scheduled_event().description


def test_an_update_with_long_changes_fits():
    world = World()
    names = (ME, *(f"vm-{n}" for n in range(5000)))
    world.see(scheduled_event(description="a" * 60000, resources=names))
    [happened] = world.see(
        scheduled_event(description="b" * 60000, resources=names[:-1], duration=9)
    )

    data = check(told(happened))

    assert data["changes"] == {"durationInSeconds": {"from": -1, "to": 9}}
    assert set(happened.changes) == {"description", "resources", "durationInSeconds"}


def test_a_message_of_exactly_the_limit_is_left_alone_and_one_byte_more_is_not():
    room = LIMIT - len(told(transition_of("scheduled", description="")).body)

    whole = told(transition_of("scheduled", description="d" * room))
    assert len(whole.body) == LIMIT
    assert len(whole.data["description"]) == room
    assert len(
        check(told(transition_of("scheduled", description="d" * (room + 1))))["description"]
    ) < (room)


def test_a_snapshot_keeps_every_event_by_shortening_each():
    names = tuple(f"scale-set-of-the-shop_{n}" for n in range(1000))
    tracked = {
        key: Tracked(scheduled_event(key, resources=names, description="d" * 5000), announced=True)
        for key in ("A", "B", "C")
    }
    data = check(messages.source("snapshot", ABOUT, OBSERVER, NOON, tracked))

    assert [each["eventId"] for each in data["pending"]] == ["A", "B", "C"]
    for each in data["pending"]:
        assert each["description"] is None
        assert 100 < len(each["resources"]) == 1000 - each["resourcesTruncated"]
    assert "pendingTruncated" not in data


def test_a_snapshot_of_too_many_says_how_many_it_left_out():
    tracked = {f"E{n}": Tracked(scheduled_event(f"E{n}"), announced=True) for n in range(2000)}
    data = check(messages.source("snapshot", ABOUT, OBSERVER, NOON, tracked))

    assert 50 < len(data["pending"]) == 2000 - data["pendingTruncated"]


@pytest.mark.parametrize(
    "fields",
    [
        {"event_type": "\x00" * 70000},
        {"event_id": "x" * 70000},
        {"resource_type": "\U0001f527" * 70000, "event_source": "\U0001f527" * 70000},
        {"resources": ("x" * 70000,), "duration": 10**4000},
    ],
    ids=["type", "id", "texts", "resource"],
)
def test_hostile_input_still_fits(fields):
    labels = {f"label {n} \U0001f527": "\x00" * 500 for n in range(200)}
    observer = replace(OBSERVER, labels=labels)

    check(told(transition_of("updated", **fields), observer))


def test_an_audit_of_anything_fits():
    detail = {"policy": [{"rule": "x" * 1000, "n": [n] * 100} for n in range(1000)], "hash": "abc"}
    made = messages.audited("loaded", OBSERVER, NOON, actor="a" * 70000, via="x", detail=detail)

    assert check(made)["action"] == "loaded"


texts = st.text(st.characters(codec=None), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def longer(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda text, times: text * times, strategy, st.sampled_from([1, 1, 5000]))


@given(
    st.fixed_dictionaries(
        {
            "EventId": longer(texts.filter(bool)),
            "EventType": longer(texts.filter(bool)),
            "Description": st.none() | longer(texts),
            "EventSource": st.none() | texts,
            "Resources": st.lists(longer(texts), max_size=5),
            "DurationInSeconds": st.none() | st.integers() | st.floats(),
            "Extra": values,
        }
    ),
    longer(texts),
)
def test_any_answer_becomes_a_valid_message_that_fits(fields, label):
    observer = replace(OBSERVER, labels={label: label})

    made = told(parsed(**fields), observer)

    check(made)
    assert JSONFormat().read(None, made.body).get_data() == made.data
