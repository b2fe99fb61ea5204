"""What the API and the commands read from the journal."""

import json

import pytest
from support.journal_tools import NOW, about, tracking
from support.world import published

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State
from bridge.journal import Settlement, views
from bridge.journal.cursors import register
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
    assert views.latest(store) == ([], None)
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
    assert [one["id"] for one in views.latest(store).events] == ["A/2", "B/1"]
    assert [one["id"] for one in views.latest(store, limit=1).events] == ["A/2"]


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


def test_a_sink_that_has_yet_to_try_a_row_is_waiting(store):
    store.append([about("A", 1)], NOW)
    register(store, ["late"], NOW)
    store.append([about("A", 2)], NOW)
    before, after = views.history(store, "A")
    assert [(one["sink"], one["outcome"]) for one in before["deliveries"]] == []
    assert [(one["sink"], one["outcome"], one["attempts"]) for one in after["deliveries"]] == [
        ("late", None, 0)
    ]


def test_the_latest_come_in_pages_and_each_event_on_one_of_them(store):
    store.append([about("A", 1), about("B", 1), about("C", 1), about("A", 2)], NOW)
    found, before = [], None
    while True:
        page = views.latest(store, limit=1, before=before)
        found += [one["id"] for one in page.events]
        if (before := page.next) is None:
            break
    assert found == ["A/2", "C/1", "B/1"]


def test_a_page_has_what_is_wanted_and_says_when_it_stopped_looking(store, monkeypatch):
    store.append([about(name, 1) for name in "ABCDE"], NOW)
    found = views.latest(store, wanted=lambda one: one["partitionkey"] in "AE")
    assert [one["partitionkey"] for one in found.events] == ["E", "A"]
    monkeypatch.setattr(views, "_MOST_READ", 2)
    first = views.latest(store, wanted=lambda one: one["partitionkey"] == "A")
    assert (first.events, first.next) == ([], views.position(store, "D/1"))


def test_very_long_histories_keep_their_milestones_and_the_newest_rows(store, monkeypatch):
    monkeypatch.setattr(views, "_MOST_HISTORY", 3)
    recorded = "azure.scheduledevents.approval.recorded.v1"
    votes = [CloudEvent(f"v{n}", recorded, "A", b'{"id": "v%d"}' % n) for n in range(5)]
    store.append([about("A", 1), *votes], NOW)
    rows = views.history(store, "A")
    assert [row["cloudevent"]["id"] for row in rows] == ["A/1", "v2", "v3", "v4"]
    assert views.history_length(store, "A") == 6


def test_milestones_are_those_of_the_latest_life(store):
    def one(n, kind):
        name = f"azure.scheduledevents.{kind}.v1"
        return CloudEvent(f"m{n}", name, "A", json.dumps({"id": n, "type": name}).encode())

    kinds = ["scheduled", "started", "completed", "scheduled", "updated", "approval.granted"]
    store.append([one(n, kind) for n, kind in enumerate(kinds)], NOW)
    found = views.milestones(store, "A")
    assert {kind: said["id"] for kind, said in found.items()} == {
        "scheduled": 3,
        "approval.granted": 5,
    }
    assert views.milestones(store, "B") == {}


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
    whole = (
        views.latest(store).events,
        views.history(store, outcome.key),
        views.outcomes(store, approval),
    )
    assert all(whole)
    assert views.refusals(store, 9)
    store.connection.execute("UPDATE outbox SET body = ?", (body,))
    assert views.latest(store).events == views.history(store, outcome.key) == []
    assert views.outcomes(store, approval) == views.refusals(store, 9) == []
