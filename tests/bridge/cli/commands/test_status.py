import json

from bridge.cli.commands import status


async def test_the_exit_code_says_whether_the_bridge_is_ready(seb, running):
    code, out, err = await seb(status)
    assert (code, err) == (0, "")
    assert out.startswith("The bridge on FrontEnd_IN_0 (")
    bus = running.runtime.status.sinks["bus"]
    bus.state, bus.error = "unavailable", "broken\x1b[2J"
    code, out, _ = await seb(status)
    assert code == 1
    assert "NOT READY: sink bus." in out
    assert "broken\\x1b[2J" in out


async def test_json_is_what_the_api_returns(seb, running):
    running.runtime.status.sinks["bus"].state = "stopped"
    code, out, _ = await seb(status, "--json")
    assert code == 1
    assert json.loads(out)["readiness"]["reasons"][0]["what"] == "sink bus"
