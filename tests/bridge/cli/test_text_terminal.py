"""Commands on a terminal of 80 columns: nothing is wider, and short ids are shown and taken."""

import json
from typing import Any

import pytest
from support.served_bridge import announce, kill
from support.voting_bridge import ALONE, FIRST, SECOND
from support.world import ME, OTHER

from bridge.cli.commands import approve, check, dead_letters, events, sinks, status

pytest.importorskip("termios", reason="a terminal of POSIX")
from support.terminal import on_terminal, printed

LONG = "a-very-long-name-for-a-sink-that-nobody-would-choose-but-somebody-will"


async def test_lists_and_details_fit_80_columns(open_polls):
    [told] = await announce(open_polls.journal, FIRST, description="It is maintained. " * 20)
    await announce(open_polls.journal, SECOND, resources=tuple(f"vm-{n}" for n in range(40)))
    await kill(open_polls.journal, "bus", told, f"refused: {'too big ' * 100}")
    known = open_polls.served.runtime.status.sinks
    known["bus"].state, known["bus"].error = "unavailable", f"{LONG}: no route to host " * 5
    commands: list[tuple[Any, list[str]]] = [
        (events, []),
        (events, [FIRST[:8]]),
        (sinks, []),
        (status, []),
        (dead_letters, ["list"]),
        (approve, [FIRST[:8], "--resource", ME]),
        (approve, ["nothing"]),
        (check, []),
    ]
    for module, words in commands:
        _, lines = await printed(open_polls.run(module, "approve", *words))
        assert max(map(len, lines)) <= 80, (module, words)
        assert lines != [""], (module, words)
        assert FIRST not in "\n".join(lines) or words == [FIRST[:8]]
        if (module, words) in ((events, []), (status, [])):
            [row] = [line for line in lines if line.startswith(FIRST[:8])]
            assert "  0 of 2  " in row
            assert "…" not in row.rpartition("  ")[0], "only the names of VMs are cut"


async def test_a_short_id_is_taken_and_one_too_short_is_explained(open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    await announce(open_polls.journal, f"{FIRST[:9]}OTHER", **ALONE)
    code, lines = await printed(open_polls.run(approve, "approve", FIRST[:8]))
    assert (code, open_polls.told) == (1, [])
    assert "2 scheduled events begin with 602D9444" in " ".join(lines)
    code, lines = await printed(open_polls.run(approve, "approve", FIRST[:10]))
    assert (code, open_polls.told) == (0, [[FIRST]])
    assert lines[0].startswith("602D9444  granted: Azure accepted it")


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("\x04", 2)])
async def test_dropping_all_dead_letters_asks_first(open_polls, answer, left):
    for key in (FIRST, SECOND):
        [told] = await announce(open_polls.journal, key, resources=(ME, OTHER))
        await kill(open_polls.journal, "bus", told)
    words = ("dead-letters", "drop", "--all", "-c", str(open_polls.file))
    async with on_terminal(*words) as terminal:
        await terminal.see(lambda: "Drop 2 dead letters for good? y/N " in terminal.text())
        terminal.type(answer)
        assert await terminal.process.wait() == (0 if left == 0 else 1)
    _, found = await open_polls.served.control.ask("GET", "/api/v1/dead-letters")
    assert len(found["deadLetters"]) == left


async def test_a_pipe_gets_whole_ids_and_whole_sentences(open_polls, capsys):
    await announce(open_polls.journal, FIRST)
    assert await open_polls.run(events, "events") == 0
    assert await open_polls.run(status, "status") == 0
    out = capsys.readouterr().out
    assert out.count(f"{FIRST}  Reboot") == 2
    assert "\x1b" not in out
    assert await open_polls.run(status, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["pending"] == {"events": 1, "drills": 0}
