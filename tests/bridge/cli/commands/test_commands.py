import argparse
import asyncio
import json

import pytest
from support.served_bridge import announce, bridge, config, end, kill
from support.world import ME, NOON, published

from bridge.cli.commands import dead_letters, events, health, schema, sinks
from bridge.journal import Verdict

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


def parse(module, *words):
    parser = argparse.ArgumentParser(prog="seb")
    module.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
async def running(tmp_path):
    async with bridge(config(tmp_path)) as made:
        (tmp_path / "config.yaml").write_text(f"state_dir: {tmp_path}\nhttp: {{listen: null}}\n")
        yield made


@pytest.fixture
def seb(running, tmp_path, capsys):
    """Run a command against the running bridge: its exit code, stdout and stderr."""

    async def run(module, *words):
        args = parse(
            module, *words, *([] if module is schema else ["-c", str(tmp_path / "config.yaml")])
        )
        code = await asyncio.to_thread(module.run, args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


async def test_no_events_is_said_in_a_sentence(seb):
    assert await seb(events) == (0, "There is no scheduled event.\n", "")
    assert await seb(events, "--pending") == (0, "There is no pending scheduled event.\n", "")


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
    assert pending.endswith("yes      FrontEnd_IN_0, BackEnd_IN_0")
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


async def test_one_event_tells_its_story(seb, running):
    (told,) = await announce(running.journal, FIRST)
    await running.journal.settle("bus", [Verdict(told.id, None, "no broker")], 1.0)
    await running.journal.settle("bus", [Verdict(told.id, "delivered")], 2.0)
    await running.journal.settle("pager", [Verdict(told.id, None, "timed out")], 2.0)
    code, out, _ = await seb(events, FIRST.lower())
    assert code == 0
    assert "event         602D9444" in out
    assert f"azure.scheduledevents.scheduled.v1  {told.id}" in out
    assert "    bus delivered at attempt 2: no broker\n" in out
    assert "    pager waiting: timed out\n" in out


def test_the_story_has_the_votes_that_stand_and_the_reason_of_one_that_does_not():
    refused = json.loads(published()["azure.scheduledevents.approval.refused.v1"].body)
    event = dict.fromkeys(("notBefore", "approveBy", "affected", "eventSource", "description"))
    event |= {"eventId": FIRST, "eventType": "Reboot", "status": "Scheduled", "resources": [ME]}
    event |= {"inferred": False, "drill": False}
    event["history"] = [{"cloudevent": refused, "deliveries": []}]
    vote = {"approver": "orders", "resource": None, "decision": "hold", "reason": "not yet"}
    vote |= {"verified": True, "via": "bus", "at": "2026-11-15T12:00:00Z"}
    out = events.one({**event, "votes": [vote]}, NOON)
    assert "APPROVER  FOR  SAID  AT               VERIFIED  VIA  REASON\n" in out
    assert "orders    all  hold  12:00:00Z (now)  yes       bus  not yet\n" in out
    assert "    approve by billing; resource-required; the event has several VMs; name" in out
    assert "APPROVER" not in events.one({**event, "votes": []}, NOON)


async def test_an_unknown_event_is_an_error_on_stderr(seb):
    code, out, err = await seb(events, "nothing")
    assert (code, out) == (1, "")
    assert err == "seb: The journal knows no scheduled event 'nothing'.\n"


async def test_what_comes_from_azure_cannot_play_with_the_terminal(seb, running):
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"
    await announce(
        running.journal, f"E{evil}", event_type=evil, resources=(ME, evil), description=evil
    )
    for words in ((), (f"E{evil}",), ("--json",)):
        code, out, err = await seb(events, *words)
        assert code == 0, err
        assert all(c.isprintable() or c == "\n" for c in out + err), words
        assert "owned" in out.lower()


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
    assert await seb(sinks, "--resume", "bus") == (0, "bus: it goes on.\n", "")
    assert bus.state == "starting"
    assert await seb(sinks, "--resume", "bus") == (0, "bus: it had not stopped.\n", "")
    code, _, err = await seb(sinks, "--resume", "none")
    assert (code, "There is no sink 'none'" in err) == (1, True)


async def test_dead_letters_are_listed_shown_replayed_and_dropped(seb, running):
    assert (await seb(dead_letters, "list"))[1] == "There is no dead letter.\n"
    told = [*await announce(running.journal, FIRST), *await announce(running.journal, SECOND)]
    for one in told:
        await kill(running.journal, "bus", one)
    _, out, _ = await seb(dead_letters, "list")
    assert [line.split()[0] for line in out.splitlines()] == ["ID", "bus:1", "bus:2"]
    _, out, _ = await seb(dead_letters, "show", "bus:1")
    assert "too big" in out
    assert told[0].id in out
    assert await seb(dead_letters, "replay", "bus:1") == (0, "bus:1 will be sent again.\n", "")
    assert await seb(dead_letters, "drop", "--all") == (0, "bus:2 was dropped.\n", "")
    assert json.loads((await seb(dead_letters, "list", "--json"))[1])["deadLetters"] == []


async def test_of_a_long_reason_the_list_has_the_beginning_and_the_end(seb, running):
    [told] = await announce(running.journal, FIRST)
    reason = f"exit code 3: {'so it went on ' * 200}and then the disk was full"
    await kill(running.journal, "bus", told, reason)
    [_, row] = (await seb(dead_letters, "list"))[1].splitlines()
    assert "exit code 3: so it went on" in row
    assert row.endswith("and then the disk was full")
    assert len(row) < 500
    assert reason in (await seb(dead_letters, "show", "bus:1"))[1]


async def test_dead_letters_of_one_sink_only(seb, running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    await kill(running.journal, "pager", told)
    assert (await seb(dead_letters, "replay", "--sink", "pager"))[1].startswith("pager:1 ")
    _, out, _ = await seb(dead_letters, "list", "--sink", "bus")
    assert "bus:1" in out
    assert "pager:1" not in out


async def test_a_letter_that_is_gone_does_not_stop_the_others(seb, running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    code, out, err = await seb(dead_letters, "drop", "bus:7", "bus:1")
    assert (code, out) == (1, "bus:1 was dropped.\n")
    assert "bus:7" in err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["burn"],
        ["show"],
        ["replay"],
        ["drop"],
        ["drop", "bus:1", "--all"],
        ["replay", "--all", "--sink", "bus"],
    ],
)
def test_wrong_usage_is_exit_2(words, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(dead_letters, *words)
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


def test_without_a_bridge_one_sentence_on_stderr(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(f"state_dir: {tmp_path}\nhttp: {{listen: 127.0.0.1:9}}\n")
    assert events.run(parse(events, "-c", str(file))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seb: No bridge is running here (no control socket in ")
    assert err.count("\n") == 1


def test_a_bad_configuration_is_exit_78(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text("sauce: {}\n")
    assert sinks.run(parse(sinks, "-c", str(file))) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert "sauce" in err


def test_a_secret_of_the_service_need_not_be_set_in_the_operators_shell(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("NOT_MINE", raising=False)
    file = tmp_path / "config.yaml"
    file.write_text(f'state_dir: {tmp_path}\nhttp: {{listen: null, tokens: ["${{NOT_MINE}}"]}}\n')
    assert sinks.run(parse(sinks, "-c", str(file))) == 1
    assert "No bridge is running here" in capsys.readouterr().err


def test_a_file_that_is_bad_beyond_that_is_told_as_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("NOT_MINE", raising=False)
    file = tmp_path / "config.yaml"
    file.write_text('sauce: 1\nhttp: {tokens: ["${NOT_MINE}"]}\n')
    assert sinks.run(parse(sinks, "-c", str(file))) == 78
    assert "${NOT_MINE} is not set" in capsys.readouterr().err


def test_schema_lists_names_and_prints_one(capsys):
    assert schema.run(parse(schema)) == 0
    names = capsys.readouterr().out.split()
    assert "config.v1" in names
    assert schema.run(parse(schema, "config.v1")) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


def test_a_schema_that_there_is_not_is_a_usage_error(capsys):
    assert schema.run(parse(schema, "confg")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seb: there is no schema 'confg'")


async def test_a_bridge_that_lives_is_told_by_the_exit_code(seb, running):
    assert await seb(health) == (0, "alive\n", "")
    running.runtime.status.started -= 1000
    running.runtime.status.source.last_poll = None
    code, out, err = await seb(health)
    assert (code, out) == (1, "")
    assert "the poll loop has not moved" in err


async def test_a_bridge_that_is_not_ready_says_why(seb, running):
    assert await seb(health, "--ready") == (0, "ready\n", "")
    running.runtime.status.source.last_good = None
    code, out, err = await seb(health, "--ready")
    assert (code, out) == (1, "")
    assert err.startswith("seb: source: the metadata service has not answered yet")
