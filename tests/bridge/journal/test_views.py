"""What the API and the commands read from the journal."""

import json

import pytest
from support.journal_tools import NOW, about, tracking
from support.world import published

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State
from bridge.journal import Settlement, views
from bridge.journal.schema import connect_memory
from bridge.journal.store import Store


@pytest.fixture
def store():
    made = Store(connect_memory())
    yield made
    made.close()


def test_an_empty_journal_has_no_head_no_history_and_nothing_pending(store):
    assert views.head(store) == (0, None)
    assert views.after(store, 0) == []
    assert views.latest(store) == []
    assert views.history(store, "A") == []
    assert views.pending(store) == {}
    assert views.size(store) > 0


def test_a_stream_reads_on_after_the_row_that_it_had(store):
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    seq = views.position(store, "A/1")
    assert seq is not None
    rows = views.after(store, seq)
    assert [event.id for _, event in rows] == ["B/1", "A/2"]
    assert views.after(store, seq, limit=1) == rows[:1]
    assert views.head(store) == (rows[-1][0], "A/2")
    assert views.position(store, "nothing") is None


def test_a_cloudevent_is_found_by_its_id(store):
    store.append([about("A", 1), about("B", 1)], NOW)
    assert views.published(store, "B/1") == about("B", 1)
    assert views.published(store, "B/2") is None


def test_the_head_of_a_journal_without_rows_is_the_last_number_assigned(store):
    store.append([about("A")], NOW)
    seq, _ = views.head(store)
    store.connection.execute("DELETE FROM outbox")
    assert views.head(store) == (seq, None)


def test_pending_is_what_was_announced(store):
    store.commit(tracking("A", "B"), [], NOW)
    assert sorted(views.pending(store)) == ["A", "B"]
    store.commit(State(), [], NOW)
    assert views.pending(store) == {}


def test_the_latest_of_each_event_comes_newest_first_and_only_transitions_count(store):
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    store.append([published()["azure.scheduledevents.bridge.audited.v1"]], NOW)
    assert [one["id"] for one in views.latest(store)] == ["A/2", "B/1"]
    assert [one["id"] for one in views.latest(store, limit=1)] == ["A/2"]


def test_the_history_of_an_event_has_what_the_sinks_did(store):
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    for sink, verdict in (
        ("pager", Settlement("A/1", None, "busy")),
        ("bus", Settlement("A/1", "delivered", note="ticket 17")),
    ):
        store.settle(sink, [verdict], NOW + 1)
    first, second = views.history(store, "A")
    assert (first["cloudevent"]["id"], second["cloudevent"]["id"]) == ("A/1", "A/2")
    assert [
        (one["sink"], one["outcome"], one["error"], one["note"]) for one in first["deliveries"]
    ] == [
        ("bus", "delivered", None, "ticket 17"),
        ("pager", None, "busy", None),
    ]
    assert {one["at"] for one in first["deliveries"]} == {NOW + 1}
    assert second["deliveries"] == []


def test_the_outcomes_of_an_approval_are_found_by_its_id(store):
    told = [one for kind, one in published().items() if ".approval." in kind]
    store.append([about("A"), *told], NOW)
    ids = [json.loads(one.body)["data"]["approvalId"] for one in told]
    for wanted in set(ids) - {None}:
        found = views.outcomes(store, wanted)
        assert [one["data"]["approvalId"] for one in found] == [wanted] * ids.count(wanted)
    assert views.outcomes(store, "nothing") == []


def test_the_latest_refusals_come_newest_first_and_in_a_limited_number(store):
    told = published()
    refused = told["azure.scheduledevents.approval.refused.v1"]
    made = [
        CloudEvent(f"r{n}", refused.type, "A", json.dumps({"id": n}).encode()) for n in (1, 2, 3)
    ]
    store.append([made[0], told["azure.scheduledevents.scheduled.v1"], *made[1:]], NOW)
    assert views.refusals(store, 2) == [{"id": 3}, {"id": 2}]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff{}", b'{"data": {"eventId": "\xff"}}'])
def test_what_the_disk_damaged_is_left_out_of_every_list(store, body):
    told = list(published().values())
    store.append(told, NOW)
    outcome = next(one for one in told if one.kind == "approval.recorded")
    approval = outcome.data["approvalId"]
    whole = views.latest(store), views.history(store, outcome.key), views.outcomes(store, approval)
    assert all(whole)
    assert views.refusals(store, 9)
    store.connection.execute("UPDATE outbox SET body = ?", (body,))
    assert views.latest(store) == views.history(store, outcome.key) == []
    assert views.outcomes(store, approval) == views.refusals(store, 9) == []
