import re

from support.ballots import delivery
from support.bridge import Azure
from support.guarded_bridge import audits
from support.served_bridge import announce, end, kill
from support.world import ME

from bridge.approvals.service import ApprovalService
from bridge.journal import Settlement

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


async def test_the_index_says_what_is_here(running):
    status, body = await running.http.ask("GET", "/")
    assert status == 200
    assert body["version"] == "1.2.3"
    assert "GET /api/v1/events" in body["paths"]


async def test_every_path_of_the_index_is_there(running):
    _, body = await running.http.ask("GET", "/")
    for line in body["paths"]:
        method, path = re.sub(r"[{}]", "", line).split()
        if path.endswith("/stream"):
            continue
        _, answer = await running.control.ask(method, path)
        assert "There is nothing at this path" not in str(answer), line


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


async def test_sinks_show_what_waits_and_what_died(running):
    (told,) = await announce(running.journal, FIRST)
    await announce(running.journal, SECOND)
    await kill(running.journal, "bus", told)
    running.runtime.status.sinks["pager"].error = "connection refused"
    _, body = await running.http.ask("GET", "/api/v1/sinks")
    bus, pager = body["sinks"]
    assert (bus["name"], bus["waiting"], bus["dead"], bus["required"]) == ("bus", 1, 1, True)
    assert (pager["waiting"], pager["error"]) == (2, "connection refused")
    assert pager["oldest"].endswith("Z")


async def test_dead_letters_are_listed_and_shown(running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    _, body = await running.http.ask("GET", "/api/v1/dead-letters")
    (letter,) = body["deadLetters"]
    assert (letter["sink"], letter["cloudEventId"], letter["reason"]) == ("bus", told.id, "too big")
    assert body["more"] is False
    _, none = await running.http.ask("GET", "/api/v1/dead-letters?sink=pager")
    assert none["deadLetters"] == []
    _, shown = await running.http.ask("GET", letter["href"])
    assert shown["cloudevent"]["id"] == told.id


async def test_a_dead_letter_is_replayed_and_that_is_audited(running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    status, body = await running.control.ask("POST", "/api/v1/dead-letters/bus:1/replay")
    assert (status, body) == (202, {"id": "bus:1", "outcome": "replayed"})
    rows = await running.journal.run(lambda store: store.unsettled("bus", 10, frozenset()))
    assert told.id in [row.event.id for row in rows]
    (audit,) = await audits(running)
    assert (audit["action"], audit["via"]) == ("dead-letter.replayed", "control")


async def test_a_dead_letter_is_dropped_once(running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    assert (await running.control.ask("DELETE", "/api/v1/dead-letters/bus:1"))[0] == 200
    assert (await running.control.ask("DELETE", "/api/v1/dead-letters/bus:1"))[0] == 404
    assert [audit["action"] for audit in await audits(running)] == ["dead-letter.dropped"]


async def test_a_sink_gets_everything_again(running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Settlement(told.id, "delivered")], 1.0)
    status, body = await running.control.ask("POST", "/api/v1/sinks/bus/replay")
    assert (status, body) == (202, {"sink": "bus", "cloudEvents": 1})
    status, problem = await running.control.ask("POST", "/api/v1/sinks/nowhere/replay")
    assert (status, problem["status"]) == (404, 404)


async def test_a_stopped_sink_is_shown_and_resumed_and_that_is_audited(running):
    bus = running.runtime.status.sinks["bus"]
    bus.state, bus.error = "stopped", "410: unsubscribed"
    _, body = await running.control.ask("GET", "/api/v1/sinks")
    assert (body["sinks"][0]["state"], body["sinks"][0]["error"]) == (
        "stopped",
        "410: unsubscribed",
    )
    for resumed in (True, False):
        status, body = await running.control.ask("POST", "/api/v1/sinks/bus/resume")
        assert (status, body) == (202, {"sink": "bus", "resumed": resumed})
    assert bus.state == "untried"
    (audit,) = await audits(running)
    assert (audit["action"], audit["detail"]["stoppedBecause"]) == (
        "sink.resumed",
        "410: unsubscribed",
    )
    assert (await running.control.ask("POST", "/api/v1/sinks/nowhere/resume"))[0] == 404
    assert (await running.http.ask("POST", "/api/v1/sinks/bus/resume"))[0] in {401, 403}


async def test_a_replay_resumes_too(running):
    running.runtime.status.sinks["bus"].state = "stopped"
    assert (await running.control.ask("POST", "/api/v1/sinks/bus/replay"))[0] == 202
    assert running.runtime.status.sinks["bus"].state == "untried"


async def test_a_note_about_a_delivery_is_part_of_the_history(running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Settlement(told.id, "delivered", note="ticket 17")], 1.0)
    _, body = await running.control.ask("GET", f"/api/v1/events/{FIRST}")
    (delivery,) = body["history"][0]["deliveries"]
    assert (delivery["outcome"], delivery["note"]) == ("delivered", "ticket 17")


async def test_nothing_is_changed_while_the_journal_cannot_be_written(running):
    running.journal.trouble = "the disk is full"
    for method, path in (
        ("POST", "/api/v1/dead-letters/bus:1/replay"),
        ("DELETE", "/api/v1/dead-letters/bus:1"),
        ("POST", "/api/v1/sinks/bus/replay"),
    ):
        status, problem = await running.control.ask(method, path)
        assert status == 503
        assert "cannot be written" in problem["detail"]
    running.journal.trouble = None


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


async def test_an_approval_is_found_by_its_id_even_if_that_is_a_place_in_a_log(running):
    await announce(running.journal, FIRST)
    await hear(running, resource=ME, _position="approvals/0/17")
    await hear(running, id="no-resource")
    status, body = await running.http.ask("GET", "/api/v1/approvals/approvals/0/17")
    assert status == 200
    assert (body["approvalId"], len(body["votes"])) == ("approvals/0/17", 1)
    assert [one["data"]["decision"] for one in body["outcomes"]] == ["approve"]
    _, body = await running.http.ask("GET", "/api/v1/approvals/no-resource")
    assert body["votes"] == []
    assert [one["data"]["reason"] for one in body["outcomes"]] == ["resource-required"]


async def test_an_unknown_approval_is_not_found(running):
    status, body = await running.http.ask("GET", "/api/v1/approvals/nothing")
    assert status == 404
    assert "has no approval 'nothing'" in body["detail"]
