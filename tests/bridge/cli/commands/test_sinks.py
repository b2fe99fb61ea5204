from typing import Any, cast

from support.served_bridge import announce

from bridge.cli.commands import sinks
from bridge.cli.shell import Ask

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"


async def test_sinks_are_a_table(seb, running):
    await announce(running.journal, FIRST)
    running.runtime.status.sinks["bus"].error = "broken\x1b[2J"
    code, out, _ = await seb(sinks)
    head, bus, pager = out.splitlines()
    assert code == 0
    assert head.split()[:5] == ["SINK", "TYPE", "STATE", "SINCE", "WAITING"]
    assert bus.startswith("bus  ")
    assert bus.endswith("broken\\x1b[2J")
    assert bus[head.index("WAITING") :].split()[0] == "1"
    assert pager.startswith("pager (best effort)")


async def test_a_sink_is_replayed_on_request(seb, running):
    await announce(running.journal, FIRST)
    assert await seb(sinks, "--replay", "bus") == (
        0,
        "bus: 1 CloudEvents will be sent again.\n",
        "",
    )
    code, _, err = await seb(sinks, "--replay", "none")
    assert code == 1
    assert "There is no sink 'none'" in err


async def test_a_stopped_sink_is_resumed_on_request(seb, running):
    bus = running.runtime.status.sinks["bus"]
    bus.state, bus.error = "stopped", "410: unsubscribed"
    assert "stopped" in (await seb(sinks))[1]
    assert await seb(sinks, "--resume", "bus") == (0, "bus: it has resumed.\n", "")
    assert bus.state == "untried"
    assert await seb(sinks, "--resume", "bus") == (0, "bus: it was not stopped.\n", "")
    code, _, err = await seb(sinks, "--resume", "none")
    assert (code, "There is no sink 'none'" in err) == (1, True)


async def test_a_wrong_name_names_the_nearest_right_one(seb):
    for act in ("--replay", "--resume"):
        _, _, err = await seb(sinks, act, "bsu")
        assert err == "seb: There is no sink 'bsu'; did you mean bus?\n"


async def test_the_progress_of_a_replay_ends_when_nothing_is_left(running, capsys, monkeypatch):
    monkeypatch.setattr(sinks, "EVERY", 0.0)
    waiting = iter([3, 1, 0])

    async def ask(method: str, path: str) -> Any:
        assert (method, path) == ("GET", sinks.PATH)
        found = {"name": "bus", "waiting": next(waiting), "state": "connected", "error": None}
        return {"sinks": [found]}

    await sinks.follow(cast("Ask", ask), "bus", 3)
    said = capsys.readouterr().err
    assert [part.partition("\x1b")[0] for part in said.split("\r")[1:]] == [
        "0 of 3 sent", "2 of 3 sent", "3 of 3 sent",
    ]  # fmt: skip
    assert said.endswith("\n")
