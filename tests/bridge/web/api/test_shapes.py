"""The JSON objects of the API, made from the journal's content."""

import json
from dataclasses import replace

import pytest
from support.ballots import cast
from support.world import EVENT_ID, ME, NOON, NOTICE, OBSERVER, OTHER, published, scheduled_event

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import REHEARSED, Tracked
from bridge.journal.cursors import Backlog, DeadLetter
from bridge.runtime.refusals import UnpublishedRefusal
from bridge.runtime.status import SinkStatus
from bridge.web.api import shapes

TOLD = published()["azure.scheduledevents.scheduled.v1"].envelope
OVER = published()["azure.scheduledevents.completed.v1"].envelope


def tracked(event_id: str = EVENT_ID, **changes) -> Tracked:
    return Tracked(scheduled_event(event_id, **changes), announced=True, affected=True)


@pytest.mark.parametrize(("seconds", "text"), [(None, None), (0.0, "1970-01-01T00:00:00Z")])
def test_a_moment_is_a_timestamp_or_nothing(seconds, text):
    assert shapes.moment(seconds) == text


def test_a_pending_event_is_shown_as_azure_has_it_now():
    found = shapes.event(EVENT_ID, TOLD, tracked(event_type="Redeploy"), OBSERVER, NOON)
    assert (found["eventType"], found["pending"], found["affected"]) == ("Redeploy", True, True)
    assert found["noticeSeconds"] == NOTICE.total_seconds()
    assert found["lastType"] == "azure.scheduledevents.scheduled.v1"
    assert found["href"] == f"/api/v1/events/{EVENT_ID}"


def test_a_past_event_is_shown_as_last_published():
    found = shapes.event(EVENT_ID, OVER, None, OBSERVER, NOON)
    assert (found["status"], found["pending"], found["drill"]) == ("Completed", False, False)
    assert found["resources"] == OVER["data"]["resources"]
    assert found["lastChange"] == OVER["time"]


def test_a_drill_is_marked_as_one():
    drill = replace(tracked(), life=REHEARSED)
    assert shapes.event(EVENT_ID, None, drill, OBSERVER, NOON)["drill"] is True


def envelope(kind, time, **data):
    return {"type": kind, "time": time, "data": {"noticeSeconds": None, **data}}


def test_the_times_of_an_event_say_how_long_each_step_took():
    found = shapes.times(
        {
            "scheduled": envelope("scheduled", "2026-11-15T18:00:00Z", noticeSeconds=900.0),
            "approval.granted": envelope("approval.granted", "2026-11-15T18:01:30Z"),
            "started": envelope("started", "2026-11-15T18:02:00.5Z"),
            "completed": envelope("completed", "2026-11-15T18:02:30.75Z"),
        }
    )
    assert found == {
        "announced": "2026-11-15T18:00:00Z",
        "granted": "2026-11-15T18:01:30Z",
        "started": "2026-11-15T18:02:00.5Z",
        "ended": "2026-11-15T18:02:30.75Z",
        "noticeSeconds": 900.0,
        "approvalSeconds": 90.0,
        "durationSeconds": 30.25,
    }


def test_a_time_that_the_journal_no_longer_has_is_null():
    canceled = {"canceled": envelope("canceled", "2026-11-15T18:00:00Z")}
    found = shapes.times(canceled)
    assert (found["ended"], found["announced"]) == ("2026-11-15T18:00:00Z", None)
    assert (found["approvalSeconds"], found["durationSeconds"]) == (None, None)
    surprise = {"started": envelope("started", "2026-11-15T18:00:00Z")}
    assert shapes.times(surprise)["announced"] == "2026-11-15T18:00:00Z"
    assert set(shapes.times({}).values()) == {None}


def test_a_delivery_without_an_outcome_waits():
    rows = [{"cloudevent": TOLD, "deliveries": [{"sink": "bus", "outcome": None, "at": 0.0}]}]
    [shown] = shapes.history(rows)
    assert shown["deliveries"] == [
        {"sink": "bus", "outcome": "waiting", "at": "1970-01-01T00:00:00Z"}
    ]


def test_a_vote_for_all_vms_names_no_resource():
    assert shapes.vote(cast(resource=OTHER))["resource"] == OTHER
    assert shapes.vote(cast(resource=""))["resource"] is None
    assert shapes.vote(cast())["resource"] == ME


def test_a_sink_shows_its_state_and_what_waits_for_it():
    status = SinkStatus("kafka", required=True, state="unavailable", error="no broker")
    shown = shapes.sink("bus", status, Backlog(waiting=2, oldest=0.0, delivered=5, dead=1))
    assert (shown["name"], shown["state"], shown["error"]) == ("bus", "unavailable", "no broker")
    assert (shown["waiting"], shown["delivered"], shown["dead"]) == (2, 5, 1)
    assert (shown["oldest"], shown["since"]) == ("1970-01-01T00:00:00Z", None)


def test_a_dead_letter_has_its_reason_and_a_link():
    letter = DeadLetter("bus", 7, "id-1", "type", "subject", 3, 0.0, 1.0, "too big", b"{}")
    shown = shapes.dead_letter(letter)
    assert (shown["id"], shown["href"]) == ("bus:7", "/api/v1/dead-letters/bus:7")
    assert (shown["cloudEventId"], shown["reason"], shown["attempts"]) == ("id-1", "too big", 3)
    assert (shown["firstAttempt"], shown["lastAttempt"]) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:01Z",
    )


def test_votes_and_refusals_have_the_same_fields_and_come_newest_first():
    refused = published()["azure.scheduledevents.approval.refused.v1"].envelope
    later = {**refused, "time": "2026-11-15T13:00:00Z"}
    earlier = {**refused, "time": "2026-11-15T11:00:00Z"}
    kept = UnpublishedRefusal(CloudEvent.decode(json.dumps(later).encode()), stray=True)
    told = shapes.approvals([cast(at=NOON)], [earlier], [kept])
    assert [(one["outcome"], one["stray"]) for one in told] == [
        ("refused", True),
        ("recorded", False),
        ("refused", False),
    ]
    assert len({frozenset(one) for one in told}) == 1
