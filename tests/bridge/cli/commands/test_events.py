import json
from typing import Any

from support.served_bridge import announce, end
from support.world import ME, NOON, published

from bridge.cli.commands import events
from bridge.journal import Settlement

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


async def test_no_events_is_a_sentence(seb):
    assert await seb(events) == (0, "There are no scheduled events.\n", "")
    assert await seb(events, "--pending") == (0, "There are no pending scheduled events.\n", "")


async def test_events_are_a_table(seb, running):
    await announce(running.journal, SECOND)
    await end(running.journal, SECOND)
    await announce(running.journal, FIRST)
    code, out, err = await seb(events)
    assert (code, err) == (0, "")
    head, pending, past = out.splitlines()
    assert head.split("  ")[0] == "EVENT ID"
    assert pending.startswith(f"{FIRST}  Reboot  Scheduled  ")
    assert "(in 1" in pending
    assert pending.endswith("  0 of 2     yes      FrontEnd_IN_0, BackEnd_IN_0")
    assert past.startswith(f"{SECOND}  Reboot  Completed  ")
    column = head.index("THIS VM")
    assert {line[column:].split()[0] for line in (pending, past)} == {"yes"}


async def test_only_pending_events_on_request(seb, running):
    await announce(running.journal, SECOND)
    await end(running.journal, SECOND)
    await announce(running.journal, FIRST)
    _, out, _ = await seb(events, "--pending")
    assert FIRST in out
    assert SECOND not in out


async def test_events_as_json(seb, running):
    await announce(running.journal, FIRST)
    _, out, _ = await seb(events, "--json")
    assert json.loads(out)["events"][0]["eventId"] == FIRST


async def test_one_event_is_shown_with_its_history(seb, running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Settlement(told.id, None, "no broker")], 1.0)
    await running.journal.settle("bus", [Settlement(told.id, "delivered")], 2.0)
    await running.journal.settle("pager", [Settlement(told.id, None, "timed out")], 2.0)
    code, out, _ = await seb(events, FIRST.lower())
    assert code == 0
    assert "event         602D9444" in out
    assert "approvals     0 of 2\nmissing       FrontEnd_IN_0, BackEnd_IN_0\n" in out
    assert f"azure.scheduledevents.scheduled.v1  {told.id}" in out
    assert "    bus delivered at attempt 2: no broker\n" in out
    assert "    pager waiting: timed out\n" in out


def test_the_history_shows_current_votes_and_why_another_does_not_count():
    refused = json.loads(published()["azure.scheduledevents.approval.refused.v1"].body)
    event: dict[str, Any] = dict.fromkeys(
        ("notBefore", "approveBy", "affected", "eventSource", "description")
    )
    event |= {"eventId": FIRST, "eventType": "Reboot", "status": "Scheduled", "resources": [ME]}
    event |= {"inferred": False, "drill": False}
    event["history"] = [{"cloudevent": refused, "deliveries": []}]
    vote: dict[str, Any] = {
        "approver": "orders",
        "resource": None,
        "decision": "hold",
        "reason": "not yet",
    }
    vote |= {"verified": True, "via": "bus", "at": "2026-11-15T12:00:00Z"}
    out = events.one({**event, "votes": [vote]}, NOON)
    assert "APPROVER  FOR  SAID  AT               VERIFIED  VIA  REASON\n" in out
    assert "orders    all  hold  12:00:00Z (now)  yes       bus  not yet\n" in out
    assert "    approve by billing; resource-required; the event has several VMs; name" in out
    assert "APPROVER" not in events.one({**event, "votes": []}, NOON)


async def test_an_unknown_event_is_an_error_on_stderr(seb):
    code, out, err = await seb(events, "nothing")
    assert (code, out) == (1, "")
    assert err == "seb: The journal has no scheduled event 'nothing'.\n"


async def test_text_from_azure_cannot_control_the_terminal(seb, running):
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"
    await announce(
        running.journal, f"E{evil}", event_type=evil, resources=(ME, evil), description=evil
    )
    for words in ((), (f"E{evil}",), ("--json",)):
        code, out, err = await seb(events, *words)
        assert code == 0, err
        assert all(c.isprintable() or c == "\n" for c in out + err), words
        assert "owned" in out.lower()


async def test_a_short_id_shows_the_event_and_one_too_short_names_all(seb, running):
    await announce(running.journal, FIRST)
    code, out, _ = await seb(events, FIRST[:6].lower())
    assert (code, f"event         {FIRST}" in out) == (0, True)
    await announce(running.journal, f"{FIRST[:6]}AA")
    code, out, err = await seb(events, FIRST[:6])
    assert (code, out) == (1, "")
    assert err.startswith(f"seb: 2 scheduled events begin with {FIRST[:6]}: ")
