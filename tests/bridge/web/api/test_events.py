from support.ballots import delivery
from support.bridge import Azure
from support.served_bridge import announce, end
from support.world import ME

from bridge.approvals.service import ApprovalService
from bridge.journal import Settlement

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


async def test_a_quiet_bridge_has_no_events(running):
    assert await running.http.ask("GET", "/api/v1/events") == (200, {"events": []})


async def test_pending_events_come_first_and_past_ones_after(running):
    await announce(running.journal, SECOND)
    await end(running.journal, SECOND)
    await announce(running.journal, FIRST)
    _, body = await running.http.ask("GET", "/api/v1/events")
    told = [(one["eventId"], one["status"], one["pending"]) for one in body["events"]]
    assert told == [(FIRST, "Scheduled", True), (SECOND, "Completed", False)]


async def test_only_what_is_pending_can_be_asked_for(running):
    await announce(running.journal, SECOND)
    await end(running.journal, SECOND)
    await announce(running.journal, FIRST)
    _, body = await running.http.ask("GET", "/api/v1/events?pending=true")
    assert [one["eventId"] for one in body["events"]] == [FIRST]
    status, problem = await running.http.ask("GET", "/api/v1/events?pending=maybe")
    assert (status, problem["detail"]) == (400, "pending must be true or false.")


async def test_a_pending_event_says_how_much_time_is_left_now(running):
    await announce(running.journal, FIRST)
    _, body = await running.http.ask("GET", "/api/v1/events")
    (event,) = body["events"]
    assert 0 < event["noticeSeconds"] <= 900
    assert event["affected"] is True
    assert event["lastType"] == "azure.scheduledevents.scheduled.v1"


async def test_one_event_has_its_history_with_deliveries(running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Settlement(told.id, "delivered")], 1_700_000_000.0)
    await running.journal.settle("pager", [Settlement(told.id, None, "timed out")], 1_700_000_000.0)
    status, body = await running.http.ask("GET", f"/api/v1/events/{FIRST.lower()}")
    assert status == 200
    assert body["eventId"] == FIRST
    (row,) = body["history"]
    assert row["cloudevent"]["id"] == told.id
    assert [(d["sink"], d["outcome"], d["error"]) for d in row["deliveries"]] == [
        ("bus", "delivered", None),
        ("pager", "waiting", "timed out"),
    ]
    assert row["deliveries"][0]["at"] == "2023-11-14T22:13:20Z"


async def test_an_event_with_an_unusual_id_is_found_by_id_and_by_its_link(running):
    await announce(running.journal, "STRANGE {ID}/ü")
    _, body = await running.http.ask("GET", "/api/v1/events")
    (event,) = body["events"]
    for path in (event["href"], "/api/v1/events/strange%20%7Bid%7D%2F%C3%BC"):
        status, found = await running.http.ask("GET", path)
        assert (status, found["eventId"]) == (200, "STRANGE {ID}/Ü"), path


async def test_a_cloudevent_about_the_vm_is_not_a_scheduled_event(running):
    await running.runtime.audit("test", actor="me", via="control", detail={})
    status, _ = await running.http.ask("GET", "/api/v1/events/FrontEnd_IN_0")
    assert status == 404


async def test_a_note_about_a_delivery_is_part_of_the_history(running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Settlement(told.id, "delivered", note="ticket 17")], 1.0)
    _, body = await running.control.ask("GET", f"/api/v1/events/{FIRST}")
    (delivery,) = body["history"][0]["deliveries"]
    assert (delivery["outcome"], delivery["note"]) == ("delivered", "ticket 17")


async def hear(running, **said):
    service = ApprovalService(running.runtime, Azure())
    await service.intake.take(delivery(FIRST, **said), "bus")


async def test_the_votes_on_an_event_are_shown_with_it(running):
    await announce(running.journal, FIRST)
    await hear(running, resource=ME, approver="orders", reason="drained", id="a-1")
    _, body = await running.http.ask("GET", f"/api/v1/events/{FIRST.lower()}")
    [vote] = body["votes"]
    assert vote.pop("at").endswith("Z")
    assert vote == {
        "eventId": FIRST,
        "approvalId": "a-1",
        "approver": "orders",
        "resource": ME,
        "decision": "approve",
        "reason": "drained",
        "verified": False,
        "via": "bus",
    }
    kinds = [row["cloudevent"]["type"].split(".", 2)[2] for row in body["history"]]
    assert kinds == ["scheduled.v1", "approval.recorded.v1"]
    assert body["status"] == "Scheduled"
