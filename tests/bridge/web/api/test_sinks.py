from support.guarded_bridge import audits
from support.served_bridge import announce, kill

from bridge.journal import Settlement

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


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
