"""The status of the whole bridge, and the reload, over HTTP."""

import re

import pytest
from support.guarded_bridge import with_token
from support.served_bridge import announce
from support.world import ME

from bridge.config import load
from bridge.runtime.status import ListenerStatus, ReloadResult

EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"


async def test_the_index_lists_every_path(running):
    status, body = await running.http.ask("GET", "/api/v1")
    assert (status, body["version"], body["vm"]) == (200, "1.2.3", ME)
    assert {"GET /api/v1/events/{eventId}", "POST /api/v1/reload", "GET /"} <= set(body["paths"])
    for line in body["paths"]:
        method, path = re.sub(r"[{}]", "", line).split()
        if not path.endswith("/stream"):
            _, answer = await running.control.ask(method, path)
            assert "There is nothing at this path" not in str(answer), line


async def status(side, **more):
    code, body = await side.ask("GET", "/api/v1/status", **more)
    assert code == 200
    return body


async def test_the_status_names_the_vm_and_the_state_of_every_part(running):
    await announce(running.journal, EVENT_ID)
    running.runtime.status.listeners["bus"] = ListenerStatus("kafka", "unavailable", "no route")
    source = running.runtime.status.source
    source.problem, source.detail = "timeout", "no answer within 2s"
    found = await status(running.http)
    assert (found["vm"]["name"], found["version"]) == (ME, "1.2.3")
    assert (found["source"]["state"], found["source"]["problem"]) == ("failing", "timeout")
    assert found["source"]["lastGoodAgeSeconds"] >= 0
    assert found["journal"]["writable"] is True
    assert 0 < found["journal"]["bytes"] < found["journal"]["maxBytes"]
    assert [(one["name"], one["waiting"]) for one in found["sinks"]] == [("bus", 1), ("pager", 1)]
    assert found["pending"] == {"events": 1, "drills": 0}
    assert found["drill"] is None
    [one] = found["approvalSources"]
    assert (one["name"], one["state"], one["error"]) == ("bus", "unavailable", "no route")
    _, listed = await running.http.ask("GET", "/api/v1/sources")
    assert [one["name"] for one in listed["approvalSources"]] == ["bus"]


async def test_the_status_gives_the_same_reasons_as_readyz(running):
    bus = running.runtime.status.sinks["bus"]
    bus.state, bus.error = "unavailable", "connection refused"
    running.journal.trouble = "the disk is full"
    found = await status(running.http)
    running.journal.trouble = None
    assert [one["what"] for one in found["readiness"]["reasons"]] == ["journal", "sink bus"]
    assert found["journal"]["trouble"] == "the disk is full"


@pytest.mark.parametrize(
    ("token", "scopes"),
    [("ops", ["read", "approve", "operate"]), ("viewer", ["read"]), ("plain", ["read", "approve"])],
)
async def test_the_status_tells_a_caller_what_it_may_do(guarded, token, scopes):
    found = await status(guarded.http, **with_token(f"{token}-secret"))
    who = {"name": token, "via": "http", "by": "token", "scopes": scopes, "expires": None}
    assert found["caller"] == who
    assert found["access"] == {"tokens": True, "certificates": False, "votes": True}


async def test_without_tokens_a_caller_may_only_read_and_the_socket_may_do_all(running):
    found = await status(running.http)
    assert (found["caller"]["by"], found["caller"]["scopes"]) == ("none", ["read"])
    assert found["access"] == {"tokens": False, "certificates": False, "votes": False}
    local = await status(running.control)
    assert (local["caller"]["by"], local["caller"]["scopes"][-1]) == ("control", "operate")


async def test_the_status_says_whether_the_file_has_changed(running, tmp_path):
    assert (await status(running.http))["configuration"]["differs"] is None
    file = tmp_path / "config.yaml"
    file.write_text("stop_grace: 5s\n")
    running.runtime.configure(load(file, {}))
    assert (await status(running.http))["configuration"]["differs"] is False
    file.write_text("stop_grace: 6s\n")
    found = (await status(running.http))["configuration"]
    assert (found["file"], found["differs"], len(found["sha256"])) == (str(file), True, 64)
    file.unlink()
    found = (await status(running.http))["configuration"]
    assert (found["differs"], "cannot be read" in found["fileError"]) == (None, True)


def answers(running, result):
    asked = []

    async def reload(actor, via):
        asked.append((actor, via))
        return result

    running.runtime.reload = reload
    return asked


async def test_a_reload_answers_with_what_changed(guarded):
    asked = answers(guarded, ReloadResult("applied", 1.5, "ops", "http", ("sinks.pager",)))
    code, body = await guarded.http.ask("POST", "/api/v1/reload", **with_token("ops-secret"))
    assert (code, asked) == (200, [("ops", "http")])
    assert (body["outcome"], body["changed"]) == ("applied", ["sinks.pager"])


async def test_a_reload_that_reopens_the_listeners_is_only_accepted(guarded):
    answers(guarded, ReloadResult("reopening", 1.5, "ops", "http", ("http.listen",)))
    code, body = await guarded.control.ask("POST", "/api/v1/reload")
    assert (code, body["outcome"]) == (202, "reopening")


async def test_a_refused_reload_answers_with_the_sentences(guarded):
    answers(guarded, ReloadResult("rejected", 1.5, "x", "control", errors=("sink: not a key",)))
    code, body = await guarded.control.ask("POST", "/api/v1/reload")
    assert (code, body["errors"]) == (422, ["sink: not a key"])
    assert body["detail"].endswith("nothing has changed: sink: not a key")


async def test_only_operators_reload(guarded):
    asked = answers(guarded, ReloadResult("applied", 1.5, "x", "http"))
    for token in ("viewer", "plain", "robot"):
        answer = await guarded.http.ask("POST", "/api/v1/reload", **with_token(f"{token}-secret"))
        assert answer[0] == 403
    assert (await guarded.http.ask("POST", "/api/v1/reload"))[0] == 401
    assert asked == []
    assert (await guarded.control.ask("POST", "/api/v1/reload"))[0] == 200
