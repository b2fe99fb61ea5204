import json

from bridge.cli.commands import health


async def test_the_exit_code_says_that_the_bridge_is_alive(seb, running):
    assert await seb(health) == (0, "alive\n", "")
    running.runtime.status.started -= 1000
    running.runtime.status.source.last_poll = None
    code, out, err = await seb(health)
    assert (code, out) == (1, "")
    assert "the poll loop has not moved" in err


async def test_a_bridge_that_is_not_ready_says_why(seb, running):
    assert await seb(health, "--ready") == (0, "ready\n", "")
    running.runtime.status.source.good_at = None
    code, out, err = await seb(health, "--ready")
    assert (code, out) == (1, "")
    assert err.startswith("seb: source: the metadata service has not answered yet")


async def test_what_is_unusual_about_a_ready_bridge_is_a_note(seb, running):
    running.runtime.status.journal_losses = 3
    code, out, err = await seb(health, "--ready")
    assert (code, err) == (0, "")
    assert out == (
        "ready\nnote: journal: 3 deliveries were lost since the start, because the journal was full\n"
    )


async def test_a_bridge_that_is_not_ready_has_notes_too(seb, running):
    running.runtime.status.journal_losses = 3
    running.runtime.status.source.good_at = None
    code, out, err = await seb(health, "--ready")
    assert (code, out[:23]) == (1, "note: journal: 3 delive")
    assert err.startswith("seb: source: ")


async def test_json_is_the_answer_of_the_probe(seb, running):
    code, out, _ = await seb(health, "--ready", "--json")
    assert (code, json.loads(out)["ready"]) == (0, True)
    running.runtime.status.source.good_at = None
    code, out, err = await seb(health, "--ready", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["reasons"][0]["what"] == "source"
