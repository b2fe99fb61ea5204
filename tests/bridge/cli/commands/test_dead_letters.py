import json

import pytest
from support.command_line import parse
from support.served_bridge import announce, kill

from bridge.cli.commands import dead_letters

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


async def test_dead_letters_are_listed_shown_replayed_and_dropped(seb, running):
    assert (await seb(dead_letters, "list"))[1] == "There are no dead letters.\n"
    told = [*await announce(running.journal, FIRST), *await announce(running.journal, SECOND)]
    for one in told:
        await kill(running.journal, "bus", one)
    _, out, _ = await seb(dead_letters, "list")
    assert [line.split()[0] for line in out.splitlines()] == ["ID", "bus:1", "bus:2"]
    _, out, _ = await seb(dead_letters, "show", "bus:1")
    assert "too big" in out
    assert told[0].id in out
    assert await seb(dead_letters, "replay", "bus:1") == (0, "bus:1 will be sent again.\n", "")
    code, _, err = await seb(dead_letters, "drop", "--all")
    assert (code, "give --yes" in err) == (1, True)
    assert await seb(dead_letters, "drop", "--all", "--yes") == (0, "bus:2 was dropped.\n", "")
    assert json.loads((await seb(dead_letters, "list", "--json"))[1])["deadLetters"] == []


async def test_the_list_shows_the_beginning_and_the_end_of_a_long_reason(seb, running):
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


async def test_json_is_always_one_document(seb, running):
    told = [*await announce(running.journal, FIRST), *await announce(running.journal, SECOND)]
    for one in told:
        await kill(running.journal, "bus", one)
    _, out, _ = await seb(dead_letters, "show", "bus:1", "bus:2", "--json")
    shown = json.loads(out)["deadLetters"]
    assert [one["cloudevent"]["id"] for one in shown] == [one.id for one in told]
    _, out, _ = await seb(dead_letters, "replay", "bus:1", "--json")
    assert json.loads(out) == {"deadLetters": [{"id": "bus:1", "outcome": "replayed"}]}
    code, out, _ = await seb(dead_letters, "drop", "bus:7", "bus:2", "--json")
    assert (code, json.loads(out)["deadLetters"]) == (1, [{"id": "bus:2", "outcome": "dropped"}])


@pytest.mark.parametrize("words", [["list"], ["replay"], ["drop", "--yes"]], ids=" ".join)
async def test_a_wrong_name_of_a_sink_names_the_nearest_right_one(seb, running, words):
    code, out, err = await seb(dead_letters, *words, "--sink", "pagre")
    assert (code, out) == (1, "")
    assert err == "seb: There is no sink 'pagre'; did you mean pager?\n"
    code, _, err = await seb(dead_letters, *words, "--sink", "bus")
    assert (code, err) == (0, "")
