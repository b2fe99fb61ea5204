"""Every message that we publish: what it says, that it conforms, and that it fits."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import (
    EVENT_ID,
    INSTANCE,
    ME,
    NOON,
    NOTICE,
    OBSERVER,
    OTHER,
    World,
    as_azure_says,
    published,
    scheduled_event,
    started,
)

from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import SETTLING
from bridge.core.envelope import LIMIT
from bridge.core.model import parse_document, parse_instance
from bridge.core.observer import Observer
from bridge.core.state import Tracked, Transition

# kind, its schema, and how severe it is when it is about a reboot.
TABLE = [
    ("scheduled", "scheduled-event", 13),
    ("updated", "scheduled-event", 13),
    ("started", "scheduled-event", 14),
    ("completed", "scheduled-event", 9),
    ("canceled", "scheduled-event", 9),
    ("approval.recorded", "approval-outcome", 9),
    ("approval.granted", "approval-outcome", 9),
    ("approval.refused", "approval-outcome", 13),
    ("approval.failed", "approval-outcome", 18),
    ("approval.due", "approval-outcome", 13),
    ("source.degraded", "source", 17),
    ("source.recovered", "source", 9),
    ("source.snapshot", "source", 9),
    ("bridge.audited", "audit", 9),
]
EVERY = pytest.mark.parametrize(("kind", "schema", "severity"), TABLE, ids=str)
SCHEMAS = Path(__file__).parents[3] / "schemas"
VALIDATORS = {
    schema: jsonschema_rs.validator_for(
        json.loads((SCHEMAS / f"{schema}.v1.schema.json").read_text(encoding="utf-8")),
        validate_formats=True,
    )
    for schema in {row[1] for row in TABLE}
}
ALPHABET = re.compile(r"[A-Za-z0-9\-._~/:()]+")
HOSTILE = 'nul \x00 \x1f \x7f \x85 \u2028 \ufffe "\\/ </script> %s {subject} \U0001f527 \ud800 ü'
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def refusing_constants(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def check(made: CloudEvent) -> dict[str, Any]:
    """What holds for each message, whatever went into it; returns its data."""
    assert len(made.body) <= LIMIT
    envelope = json.loads(made.body.decode("utf-8"), parse_constant=refusing_constants)
    json.dumps(envelope, ensure_ascii=False).encode("utf-8")
    data = envelope.pop("data")
    schema = envelope["dataschema"].removeprefix("urn:scheduled-events-bridge:schema:")
    VALIDATORS[schema.removesuffix(":v1")].validate(data)
    assert envelope["subject"] == envelope["partitionkey"] == made.key
    assert (envelope["id"], envelope["type"]) == (made.id, made.type)
    for name, value in envelope.items():
        assert re.fullmatch("[a-z]{1,20}", name)
        assert name == "severitynumber" or ALPHABET.fullmatch(value), name
    assert CloudEvent.decode(made.body) == made
    return data


def one(kind: str) -> CloudEvent:
    return published()[f"azure.scheduledevents.{kind}.v1"]


def told(happened: Transition, observer: Observer = OBSERVER, now: datetime = NOON) -> CloudEvent:
    return messages.transition(happened, observer, now, 5)


def happening(what: str, **changes: Any) -> Transition:
    return Transition(what, scheduled_event(**changes), 1, affected=True)


# --- every type ----------------------------------------------------------------------------------


def test_the_table_holds_every_type_that_there_is():
    kinds = [row[0] for row in TABLE]

    assert kinds == list(messages.KINDS)
    assert {f"azure.scheduledevents.{kind}.v1" for kind in kinds} == set(published())


@EVERY
def test_every_type_conforms_to_its_schema(kind: str, schema: str, severity: int):
    made = one(kind)

    check(made)
    assert made.attributes["dataschema"] == f"urn:scheduled-events-bridge:schema:{schema}:v1"
    assert made.attributes["severitynumber"] == severity


@EVERY
def test_the_sdk_reads_back_what_we_write(kind: str, schema: str, severity: int):
    made = one(kind)
    read = JSONFormat().read(None, made.body)
    attributes = {**read.get_attributes(), "time": made.attributes["time"]}

    assert read.get_data() == made.data
    assert attributes == made.attributes
    assert read.get_time() == datetime.fromisoformat(made.attributes["time"])


@EVERY
@pytest.mark.parametrize("binding", ["http", "kafka"])
def test_the_sdk_carries_it_over_bindings_and_back(
    kind: str, schema: str, severity: int, binding: str
):
    made = JSONFormat().read(None, one(kind).body)
    if binding == "http":
        read = http.from_http(http.to_binary(made, JSONFormat()), JSONFormat())
    else:
        read = kafka.from_kafka(kafka.to_binary(made, JSONFormat()), JSONFormat())

    written = {name: str(value) for name, value in made.get_attributes().items()}
    assert {name: str(value) for name, value in read.get_attributes().items()} == written
    assert read.get_data() == made.get_data()


@EVERY
def test_every_type_has_the_attributes_of_the_contract(kind: str, schema: str, severity: int):
    attributes = one(kind).attributes
    about_azure = schema in {"scheduled-event", "approval-outcome"}

    assert attributes["specversion"] == "1.0"
    assert attributes["datacontenttype"] == "application/json"
    assert attributes["observer"] == ME
    assert (attributes["subject"] == ME) is not about_azure
    assert ("correlationid" in attributes) is about_azure
    assert attributes.get("correlationid", ME) == attributes["subject"]
    assert attributes["source"] == (
        "/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourcegroups/shop(prod)"
        "/scheduledevents"
    )


# --- transitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "status", "rank", "approvable"),
    [
        ("scheduled", "Scheduled", 1, True),
        ("updated", "Scheduled", 1, True),
        ("started", "Started", 2, False),
        ("canceled", "Canceled", 3, False),
        ("completed", "Completed", 4, False),
    ],
)
def test_status_rank_and_what_an_approval_is_worth(what, status, rank, approvable):
    data = check(told(happening(what)))

    assert (data["status"], data["rank"], data["approvable"]) == (status, rank, approvable)
    assert (data["approveBy"] is not None) is approvable
    assert (data["noticeSeconds"] is not None) is approvable
    assert data["notBefore"] == "2026-11-15T12:15:00Z"


def test_the_time_that_is_left_is_counted_from_now_and_may_be_negative():
    observer = replace(OBSERVER, margin=timedelta(seconds=30))
    late = NOON + NOTICE + timedelta(seconds=1.26)

    assert told(happening("scheduled")).data["noticeSeconds"] == 900.0
    assert told(happening("scheduled"), now=late).data["noticeSeconds"] == -1.3
    assert told(happening("scheduled"), observer).data["approveBy"] == "2026-11-15T12:14:30Z"


def test_no_time_has_no_notice():
    data = check(told(happening("scheduled", not_before=None)))

    assert (data["notBefore"], data["approveBy"], data["noticeSeconds"]) == (None, None, None)


def test_the_year_one_is_survived():
    data = check(told(happening("scheduled", not_before=datetime(1, 1, 1, tzinfo=UTC))))

    assert data["approveBy"] == data["notBefore"] == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("what", ["scheduled", "started", "completed"])
@pytest.mark.parametrize("kind", ["Preempt", "terminate", "Reboot"])
def test_only_the_start_of_preempt_and_terminate_is_terminal(what: str, kind: str):
    data = told(happening(what, event_type=kind)).data

    assert data["terminal"] is (what == "started" and kind != "Reboot")


@pytest.mark.parametrize(
    ("what", "kind", "previous", "severity", "text"),
    [
        ("completed", "Reboot", "Started", 9, "INFO"),
        ("completed", "Terminate", "Started", 9, "INFO"),
        ("canceled", "Preempt", "Scheduled", 9, "INFO"),
        ("scheduled", "Freeze", None, 10, "INFO"),
        ("started", "freeze", "Scheduled", 10, "INFO"),
        ("scheduled", "Reboot", None, 13, "WARN"),
        ("updated", "Redeploy", "Scheduled", 13, "WARN"),
        ("scheduled", "Levitate", None, 13, "WARN"),
        ("started", "Reboot", "Scheduled", 14, "WARN"),
        ("started", "Redeploy", "Scheduled", 14, "WARN"),
        ("scheduled", "Preempt", None, 17, "ERROR"),
        ("updated", "Terminate", "Scheduled", 17, "ERROR"),
        ("started", "Preempt", "Scheduled", 17, "ERROR"),
        ("started", "Reboot", None, 18, "ERROR"),
        ("started", "Freeze", None, 18, "ERROR"),
        ("started", "Terminate", None, 18, "ERROR"),
    ],
)
def test_the_severity_of_a_transition(what, kind, previous, severity, text):
    happened = replace(happening(what, event_type=kind), previous_status=previous)
    attributes = told(happened).attributes

    assert (attributes["severitynumber"], attributes["severitytext"]) == (severity, text)


def test_the_event_id_is_written_in_upper_case_everywhere():
    made = told(happening("scheduled", event_id=EVENT_ID.lower()))

    assert made.data["eventId"] == made.key == made.attributes["correlationid"] == EVENT_ID
    assert EVENT_ID.lower() not in made.body.decode()


def test_unknown_fields_pass_through_as_extra():
    data = check(told(happening("scheduled", extra={"Severity": {"Level": [1, None]}})))

    assert data["extra"] == {"Severity": {"Level": [1, None]}}
    assert "extra" not in told(happening("scheduled")).data


def test_fields_that_the_api_version_lacks_are_null():
    lacking = {"description": None, "event_source": None, "duration": None, "resource_type": None}
    data = check(told(happening("scheduled", **lacking)))

    assert data["description"] is data["eventSource"] is data["durationInSeconds"] is None


def test_the_observer_is_described_by_what_its_operator_asked_for():
    described = told(happening("scheduled")).data["observer"]

    assert described["tags"] == {"team": "orders"}
    assert described["labels"] == {"site": "plant-7"}
    assert (described["vm"], described["affected"]) == (ME, True)


def test_an_observer_that_knows_nothing_of_itself_still_speaks():
    made = told(happening("scheduled"), Observer())
    data = check(made)

    assert made.attributes["source"] == "/azure/scheduledevents"
    assert made.attributes["observer"] == "unknown"
    assert data["observer"]["vm"] is None


@pytest.mark.parametrize("missing", ["subscription", "resource_group"])
def test_half_a_source_is_none(missing: str):
    observer = Observer(replace(INSTANCE, **{missing: None}))

    assert observer.events_source() == "/azure/scheduledevents"


def test_the_operators_words_go_before_those_of_instance_metadata():
    observer = replace(OBSERVER, vm_name="renamed", source="https://shop.example/a?b")
    made = told(happening("scheduled"), observer)

    assert made.data["observer"]["vm"] == made.attributes["observer"] == "renamed"
    assert re.fullmatch("https://shop.example/a_b~[0-9a-f]{8}", made.attributes["source"])


# --- the source, and ourselves -------------------------------------------------------------------

ABOUT = messages.Source(NOON, None, None, None, "0.1.0")


def test_a_snapshot_lists_what_was_announced_and_is_not_known_to_be_over():
    world = World()
    foreign = scheduled_event("C", resources=(OTHER,))
    world.see(scheduled_event("A"), started(scheduled_event("B")), foreign)
    world.boot()
    world.see(started(scheduled_event("B")), foreign, after=SETTLING / 5)

    data = check(messages.source("snapshot", ABOUT, OBSERVER, NOON, world.state.tracked))

    listed = [(each["eventId"], each["status"]) for each in data["pending"]]
    assert sorted(listed) == [("A", "Scheduled"), ("B", "Started")]


def test_what_began_in_the_same_second_is_the_same():
    soon = replace(ABOUT, since=NOON + timedelta(milliseconds=999))
    next_second = replace(ABOUT, since=NOON + timedelta(seconds=1))
    ids = [messages.source("degraded", a, OBSERVER, NOON).id for a in (ABOUT, soon, next_second)]

    assert ids[0] == ids[1] != ids[2]


# --- hostile and huge ----------------------------------------------------------------------------


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
def test_whatever_azure_may_say_becomes_a_valid_message(fields):
    check(told(parsed(**fields)))


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    data = check(told(parsed(Description="a \ud800 b", Strange={"\udc00": "\ud83d\udd27"})))

    assert data["description"] == "a \ufffd b"
    assert data["extra"] == {"Strange": {"\ufffd": "\U0001f527"}}


def test_what_is_nested_without_end_is_cut():
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


def test_what_operators_write_is_made_writable_too():
    made = messages.audited(
        HOSTILE, OBSERVER, NOON, actor=HOSTILE, via="http", detail={HOSTILE: float("nan")}
    )

    assert list(check(made)["detail"].values()) == [None]


def test_extra_is_the_first_to_go():
    data = check(told(happening("scheduled", extra={"Blob": "x" * 70000})))

    assert "extra" not in data
    assert data["description"] == scheduled_event().description
    assert "resourcesTruncated" not in data


@pytest.mark.parametrize("text", ["d", "\U0001f527", "\x00"], ids=["plain", "wide", "escaped"])
def test_a_long_description_is_cut_before_any_resource(text: str):
    names = tuple(f"vm-{n}" for n in range(500))
    data = check(told(happening("scheduled", description=text * 60000, resources=names)))

    assert data["description"] == text * 1024
    assert data["resources"] == list(names)


def test_a_description_that_fits_is_left_alone():
    assert len(check(told(happening("scheduled", description="d" * 60000)))["description"]) == 60000


def test_resources_that_do_not_fit_are_counted():
    names = tuple(f"scale-set-of-the-shop_{n}" for n in range(5000))
    data = check(told(happening("scheduled", resources=names)))

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
    room = LIMIT - len(told(happening("scheduled", description="")).body)

    whole = told(happening("scheduled", description="d" * room))
    assert len(whole.body) == LIMIT
    assert len(whole.data["description"]) == room
    assert len(check(told(happening("scheduled", description="d" * (room + 1))))["description"]) < (
        room
    )


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
def test_what_nobody_sends_in_good_faith_fits_all_the_same(fields):
    labels = {f"label {n} \U0001f527": "\x00" * 500 for n in range(200)}
    observer = replace(OBSERVER, labels=labels)

    check(told(happening("updated", **fields), observer))


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


@unhurried
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


def test_source_and_id_are_the_same_on_every_vm_of_a_group():
    neighbour = replace(INSTANCE, name=OTHER, vm_id="another", hostname="backend0", tags={})
    mine, theirs = (
        told(happening("scheduled"), Observer(vm)).attributes for vm in (INSTANCE, neighbour)
    )

    assert mine["observer"] != theirs["observer"]
    assert (mine["source"], mine["id"]) == (theirs["source"], theirs["id"])
