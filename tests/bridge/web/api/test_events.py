import json

import pytest
from support.ballots import delivery
from support.bridge import Azure
from support.served_bridge import announce, end
from support.world import ME, OTHER, published

from bridge.approvals.service import ApprovalService
from bridge.core.cloudevent import CloudEvent
from bridge.journal import Settlement

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


async def test_a_quiet_bridge_has_no_events(running):
    assert await running.http.ask("GET", "/api/v1/events") == (200, {"events": [], "next": None})


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
    bus, pager = body["history"][0]["deliveries"]
    assert (bus["outcome"], bus["note"]) == ("delivered", "ticket 17")
    assert (pager["outcome"], pager["attempts"]) == ("waiting", 0)


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
        "life": 1,
    }
    kinds = [row["cloudevent"]["type"].split(".", 2)[2] for row in body["history"]]
    assert kinds == ["scheduled.v1", "approval.recorded.v1"]
    assert body["status"] == "Scheduled"


async def listed(running, query=""):
    status, body = await running.http.ask("GET", f"/api/v1/events{query}")
    assert status == 200, body
    return body


async def test_a_pending_event_says_who_is_missing_and_who_holds_until_when(running):
    await announce(running.journal, FIRST)
    await hear(running, resource=ME, approver="orders", id="a-1")
    await hear(
        running, resource=OTHER, approver="billing", decision="hold", reason="busy", id="a-2"
    )
    (event,) = (await listed(running))["events"]
    approvals = event["approvals"]
    assert (approvals["require"], approvals["satisfied"]) == ("each-resource", False)
    assert (approvals["have"], approvals["missing"]) == ([ME], [OTHER])
    (hold,) = approvals["holds"]
    assert (hold["approver"], hold["resource"], hold["reason"]) == ("billing", OTHER, "busy")
    assert hold["until"] > hold["at"]
    assert (approvals["votes"], approvals["grant"], approvals["dryRun"]) == (2, None, False)
    assert event["times"]["announced"] == event["lastChange"]


async def test_a_past_event_says_how_long_it_took_and_has_no_approvals(running):
    await announce(running.journal, FIRST)
    await end(running.journal, FIRST)
    (event,) = (await listed(running))["events"]
    assert event["approvals"] is None
    assert event["times"]["durationSeconds"] >= 0
    assert 0 < event["times"]["noticeSeconds"] <= 900


async def test_the_refusals_of_an_event_are_shown_with_it_and_those_not_published_too(running):
    await announce(running.journal, FIRST)
    await hear(running, id="no-resource")
    refused = published()["azure.scheduledevents.approval.refused.v1"]
    data = {**refused.envelope["data"], "eventId": FIRST, "approvalId": "elsewhere"}
    for told in (data, {**data, "eventId": SECOND}):
        body = json.dumps({**refused.envelope, "data": told}).encode()
        stray = CloudEvent(refused.id, refused.type, FIRST, body)
        running.runtime.status.refusals.add(stray, stray=True)
    _, body = await running.http.ask("GET", f"/api/v1/events/{FIRST}")
    assert {(one["approvalId"], one["stray"]) for one in body["refusals"]} == {
        ("no-resource", False),
        ("elsewhere", True),
    }
    assert body["more"] is False


async def test_history_is_filtered(running):
    await announce(running.journal, SECOND, event_type="Freeze")
    await end(running.journal, SECOND)
    await announce(running.journal, FIRST)
    for query, wanted in (
        ("?pending=true", [FIRST]),
        ("?pending=false", [SECOND]),
        ("?type=freeze", [SECOND]),
        ("?type=Reboot", [FIRST]),
        (f"?vm={ME.lower()}", [FIRST, SECOND]),
        ("?vm=another", []),
        ("?outcome=completed", [SECOND]),
        ("?outcome=open", [FIRST]),
        ("?drill=true", []),
        ("?from=2020-01-01", [FIRST, SECOND]),
        ("?to=2020-01-01T00:00:00Z", []),
        ("?from=2999-01-01T00:00:00%2B02:00", []),
    ):
        found = (await listed(running, query))["events"]
        assert [one["eventId"] for one in found] == wanted, query


async def test_history_has_pages_and_no_event_is_on_two_of_them(running):
    ids = [f"EVENT-{number}" for number in range(7)]
    for one in ids:
        await announce(running.journal, one)
    for one in ids:
        await end(running.journal, one)
    await announce(running.journal, FIRST)
    found, query = [], "?limit=3"
    while query:
        body = await listed(running, query)
        found.append([one["eventId"] for one in body["events"]])
        query = body["next"] and f"?limit=3&before={body['next']}"
    assert [len(page) for page in found[:2]] == [4, 3]  # what is pending comes on top
    assert [one for page in found for one in page] == [FIRST, *reversed(ids)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit must be a number from 1 to 200."),
        ("limit=201", "limit must be a number from 1 to 200."),
        ("limit=x", "limit must be a number from 1 to 200."),
        ("before=-1", "before must be the next of an earlier answer."),
        ("outcome=lost", "outcome must be completed, canceled or open."),
        ("from=yesterday", "from must be a time, such as 2026-11-15T18:29:47Z."),
        ("drill=1", "drill must be true or false."),
    ],
)
async def test_a_query_that_makes_no_sense_is_explained(running, query, said):
    status, problem = await running.http.ask("GET", f"/api/v1/events?{query}")
    assert (status, problem["detail"]) == (400, said)
