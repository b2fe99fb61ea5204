import json
import time

import pytest

from bridge.cli.commands import reload
from bridge.runtime.status import ReloadResult


@pytest.fixture
def answers(running):
    """Let the bridge answer reloads so; it is really reloaded in the tests of `app`."""

    def set_to(outcome, **more):
        async def answer(actor, via):
            return ReloadResult(outcome, time.time(), actor, via, **more)

        running.runtime.reload = answer

    return set_to


async def test_what_has_changed_is_named(seb, answers):
    answers("applied", changed=("sinks.pager", "http.tokens"))
    code, out, err = await seb(reload)
    assert (code, err) == (0, "")
    assert out == "The configuration is in force. Changed:\n  sinks.pager\n  http.tokens\n"
    answers("applied")
    assert "nothing in it has changed" in (await seb(reload))[1]


async def test_a_rejected_file_is_exit_1_with_every_error(seb, answers):
    answers("rejected", errors=("a.yaml:3: x: unknown key", "a.yaml:4: y: is missing"))
    code, out, err = await seb(reload)
    assert (code, out) == (1, "")
    assert err.splitlines()[1:] == [
        "seb: a.yaml:3: x: unknown key",
        "seb: a.yaml:4: y: is missing",
    ]
    code, out, _ = await seb(reload, "--json")
    assert (code, json.loads(out)["outcome"]) == (1, "rejected")


async def test_a_reload_that_reopens_its_listeners_is_followed_to_its_end(seb, running, answers):
    answers("reopening", changed=("http.listen",))
    later = ReloadResult("applied", time.time() + 60, "uid 0", "control", ("http.listen",))
    running.runtime.status.reload = later
    code, out, _ = await seb(reload)
    assert (code, out) == (0, "The configuration is in force. Changed:\n  http.listen\n")


async def test_a_reload_that_does_not_end_is_an_error(seb, answers, monkeypatch):
    monkeypatch.setattr(reload, "PATIENCE", 0.05)
    answers("reopening")
    code, _, err = await seb(reload)
    assert (code, "has not opened its listeners" in err) == (1, True)
