"""`seb events --pending` asks y/N on a terminal, and nowhere else."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from support.served_bridge import announce
from support.voting_bridge import ALONE, FIRST, SECOND
from support.world import ME, OTHER

from bridge.cli import main
from bridge.cli.commands import events
from bridge.cli.voting import prompt as asking


@pytest.fixture
def person(monkeypatch):
    """A user at a terminal who gives these answers; an exception class is raised."""

    class Person:
        def __init__(self):
            self.asked = []
            self.answers = []

        def answer(self, question):
            self.asked.append(question)
            answer = self.answers.pop(0)
            if callable(answer):
                answer = answer()
            return answer

    made = Person()
    monkeypatch.setattr(asking, "input", made.answer, raising=False)
    monkeypatch.setattr(events, "is_interactive", lambda: True)
    return made


def leave(error):
    raise error


async def test_only_a_yes_approves(open_polls, person, capsys):
    for number, answer in enumerate(("y", "N", "", "yes ", "nay"), start=1):
        await announce(open_polls.journal, f"E{number}", **ALONE)
        person.answers.append(answer)
    assert await open_polls.run(events, "events", "--pending") == 0
    said = [question.partition(":")[0] for question in person.asked]
    assert sorted(said) == ["E1", "E2", "E3", "E4", "E5"]
    assert open_polls.told == [[said[0]], [said[3]]]
    assert capsys.readouterr().out.count("  granted: ") == 2


async def test_the_question_says_what_it_is_about(open_polls, person):
    await announce(open_polls.journal, FIRST, event_type="Re\x1bboot")
    person.answers = ["n"]
    await open_polls.run(events, "events", "--pending")
    [question] = person.asked
    assert question.startswith(f"{FIRST[:8]}: Re\\x1bboot of {ME}, {OTHER}, not before ")
    assert question.endswith(f".\nApprove for {ME}? y/N ")


async def test_the_end_of_the_input_is_a_no_to_all_the_rest(open_polls, person):
    await announce(open_polls.journal, FIRST, **ALONE)
    await announce(open_polls.journal, SECOND, **ALONE)
    person.answers = [lambda: leave(EOFError)]
    assert await open_polls.run(events, "events", "--pending") == 0
    assert (len(person.asked), open_polls.told) == (1, [])


async def test_ctrl_c_is_a_no_too(open_polls, person):
    await announce(open_polls.journal, FIRST, **ALONE)
    person.answers = [lambda: leave(KeyboardInterrupt)]
    words = ["events", "--pending", "-c", str(open_polls.file)]
    assert await asyncio.to_thread(main, words) == 130
    assert open_polls.told == []


async def test_an_event_that_changed_during_the_prompt_is_asked_about_again(open_polls, person):
    await announce(open_polls.journal, FIRST, **ALONE)
    loop = asyncio.get_running_loop()

    def slowly():
        change = announce(open_polls.journal, FIRST, event_type="Redeploy", **ALONE)
        asyncio.run_coroutine_threadsafe(change, loop).result(10)
        return "y"

    person.answers = [slowly, "n"]
    assert await open_polls.run(events, "events", "--pending") == 0
    assert [word in question for word, question in zip(
        ("Reboot", "Redeploy"), person.asked, strict=True)] == [True, True]  # fmt: skip
    assert open_polls.told == []


async def test_a_refused_vote_does_not_end_the_prompts(open_polls, person, capsys):
    await announce(open_polls.journal, FIRST, **ALONE)
    await announce(open_polls.journal, SECOND, **ALONE)
    taking = open_polls.served.runtime.take_local

    def once():
        open_polls.served.runtime.take_local = None
        return "y"

    def again():
        open_polls.served.runtime.take_local = taking
        return "y"

    person.answers = [once, again]
    assert await open_polls.run(events, "events", "--pending") == 1
    assert len(open_polls.told) == 1
    assert "The bridge is starting" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("--pending", "--json"), ("--pending", "--no-ask"), (), (FIRST,)], ids=" ".join
)
async def test_no_ask_prints_no_prompt(open_polls, person, words):
    await announce(open_polls.journal, FIRST, **ALONE)
    assert await open_polls.run(events, "events", *words) == 0
    assert person.asked == []


async def test_what_cannot_be_approved_here_is_not_asked_about(open_polls, person):
    await announce(open_polls.journal, FIRST)
    await announce(open_polls.journal, FIRST, resources=(OTHER,))
    await announce(open_polls.journal, SECOND, status="Started", not_before=None)
    assert await open_polls.run(events, "events", "--pending") == 0
    assert person.asked == []


async def test_without_a_terminal_there_is_no_prompt(open_polls, capsys):
    await announce(open_polls.journal, FIRST, **ALONE)
    assert await open_polls.run(events, "events", "--pending") == 0
    assert "y/N" not in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
async def test_on_a_real_terminal_a_yes_is_granted_and_the_end_is_a_no(open_polls):
    import pty  # noqa: PLC0415  not everywhere

    for key in (FIRST, SECOND):
        await announce(open_polls.journal, key, **ALONE)
    master, slave = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("seb")), "events", "--pending",
        "-c", str(open_polls.file), stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    screen = b""

    async def see(text):
        nonlocal screen
        while text not in screen:
            screen += await asyncio.to_thread(os.read, master, 2**16)
        screen = screen.partition(text)[2]

    try:
        async with asyncio.timeout(25):
            await see(b"EVENT ID")
            await see(b"Approve? y/N ")
            os.write(master, b"y\n")
            await see(b"  granted: Azure accepted it")
            await see(b"Approve? y/N ")
            os.write(master, b"\x04")
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        os.close(master)
    assert len(open_polls.told) == 1
