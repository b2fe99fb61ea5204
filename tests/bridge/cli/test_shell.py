"""Commands find the running bridge, whatever its file says."""

import asyncio

import pytest
from support.command_line import parse
from support.served_bridge import announce, bridge, config

from bridge.cli.commands import approve, dead_letters, drill, events, health, sinks
from bridge.cli.shell import locate

EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
BROKEN = {
    "a typo in a key": "sauce: {{}}\nstate_dir: {0}\n",
    "a sink of no type": "state_dir: {0}\nsinks: {{bus: {{type: kafcka}}}}\n",
    "a section that is text": "state_dir: {0}\nhttp: off\n",
    "a variable that is not set": "state_dir: {0}\nhttp: {{tokens: ['${{NOT_MINE}}']}}\n",
    "a wrong address": "state_dir: {0}\nhttp: {{listen: nowhere}}\n",
    "no YAML": "state_dir: {0}\nsinks: [\n",
}
COMMANDS = {
    "sinks": (sinks, []),
    "events": (events, []),
    "health": (health, []),
    "ready": (health, ["--ready"]),
    "dead-letters": (dead_letters, ["list"]),
    "replay": (sinks, ["--replay", "bus"]),
}


@pytest.fixture
async def running(tmp_path):
    async with bridge(config(tmp_path)) as made:
        yield made


async def run(module, *words, command=""):
    args = parse(module, *words)
    args.command = command
    return await asyncio.to_thread(module.run, args)


@pytest.mark.parametrize(("module", "words"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_a_broken_file_does_not_lock_an_operator_out(
    running, tmp_path, capsys, module, words, text
):
    file = tmp_path / "config.yaml"
    file.write_text(text.format(tmp_path))
    assert await run(module, *words, "-c", str(file)) == 0, capsys.readouterr()
    out, err = capsys.readouterr()
    assert out
    assert err.count("\n") == (1 if "[\n" in text or "nowhere" in text else 0)


@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
async def test_a_vote_reaches_the_bridge_with_a_broken_file_too(
    running, tmp_path, capsys, decision
):
    await announce(running.journal, EVENT)
    (tmp_path / "config.yaml").write_text(f"sauce: 1\nstate_dir: {tmp_path}\n")
    words = [EVENT, "-c", str(tmp_path / "config.yaml")]
    assert await run(approve, *words, command=decision) == 1
    assert "The bridge is starting" in capsys.readouterr().err, "the bridge answered"


async def test_a_socket_and_a_url_are_taken_instead_of_any_file(running, tmp_path, capsys):
    for words in (
        ["--socket", str(tmp_path / "control.sock")],
        ["--socket", str(tmp_path)],
        ["--url", f"http://{running.served.http}"],
    ):
        assert await run(health, *words) == 0
        assert await run(drill, "--stop", *words) == 1
        out, err = capsys.readouterr()
        assert (out, err) == ("alive\n", "seb: No drill is running.\n")


def test_a_socket_and_a_url_at_once_are_wrong_usage(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(health, "--socket", "/x", "--url", "http://127.0.0.1:1")
    assert "not allowed with argument --socket" in capsys.readouterr().err


def test_what_the_user_names_reads_no_file(tmp_path):
    missing = str(tmp_path / "none.yaml")
    args = parse(health, "-c", missing, "--socket", str(tmp_path / "s"))
    assert locate(args, {"SEB_CONFIG": missing}).socket == tmp_path / "s"


def test_without_a_bridge_one_sentence_on_stderr(tmp_path, capsys):
    file = tmp_path / "config.yaml"
    file.write_text(f"state_dir: {tmp_path}\nhttp: {{listen: 127.0.0.1:9}}\n")
    assert events.run(parse(events, "-c", str(file))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seb: No bridge is running here (no control socket in ")
    assert err.count("\n") == 1


def test_a_file_that_does_not_exist_is_mistyped(tmp_path, capsys):
    assert sinks.run(parse(sinks, "-c", str(tmp_path / "none.yaml"))) == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert "none.yaml: cannot be read: No such file" in err
