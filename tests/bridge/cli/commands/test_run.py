import asyncio
import json
import socket
import sqlite3

import pytest
from support.command_line import parse
from support.log_tools import log_as_before
from support.voting_bridge import write_config

from bridge.cli.commands import run
from bridge.platform import lock
from bridge.simulator import Scenario, Simulator


@pytest.fixture(autouse=True)
def _log():
    with log_as_before():
        yield


@pytest.fixture
async def simulator():
    async with Simulator(Scenario()) as made:
        yield made


@pytest.fixture
def seb_run(tmp_path, simulator, capsys, monkeypatch):
    """`seb run` in a separate thread: exit code and stderr."""
    monkeypatch.delenv("SEB_LOG", raising=False)

    async def start(*words, **changes):
        keys = {
            "source": {"endpoint": simulator.endpoint},
            "state_dir": str(tmp_path / "state"),
            "sinks": {"log": {"type": "file", "path": str(tmp_path / "log.jsonl")}},
            "http": {"listen": None},
            **changes,
        }
        file = write_config(tmp_path / "config.yaml", **keys)
        args = parse(run, "-c", str(file), *words)
        code = await asyncio.to_thread(run.run, args)
        return code, capsys.readouterr().err

    return start


def sentences(said: str) -> list[str]:
    """Why the bridge failed; every line of stderr is JSON, as everywhere but on a terminal."""
    lines = [json.loads(line) for line in said.splitlines()]
    return [line["error"] for line in lines if line["event"] == "bridge.failed"]


async def fails_with(seb_run, words):
    code, said = await seb_run("--once")
    assert code == 1
    (sentence,) = sentences(said)
    assert words in sentence
    assert "Traceback" not in said


async def test_once_is_0_when_all_went_well(seb_run, tmp_path):
    code, said = await seb_run("--once")
    assert (code, sentences(said)) == (0, [])
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


async def test_once_is_1_without_an_answer(seb_run, simulator):
    simulator.world.fault("status", status=500)
    assert (await seb_run("--once"))[0] == 1


async def test_a_bad_file_is_78(seb_run):
    code, said = await seb_run("--once", sinks={"log": {"type": "fiel"}})
    assert code == 78
    assert "fiel" in sentences(said)[0]
    line = json.loads(said.splitlines()[-1])
    assert (line["level"], line["exit_code"]) == ("error", 78)


async def test_a_bad_level_is_78(seb_run, monkeypatch):
    monkeypatch.setenv("SEB_LOG", "loud")
    code, said = await seb_run("--once")
    assert code == 78
    assert "loud" in sentences(said)[0]


async def test_a_directory_that_is_in_use_is_1_and_a_sentence(seb_run, tmp_path):
    with lock(tmp_path / "state"):
        await fails_with(seb_run, "already running")


async def test_a_newer_journal_is_1_and_a_sentence(seb_run, tmp_path):
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "journal.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    await fails_with(seb_run, "newer version")


async def test_a_configured_port_that_is_taken_is_1_and_a_sentence(seb_run, monkeypatch):
    # Signals belong to the main thread, and this is not it.
    monkeypatch.setattr("bridge.app.lifecycle.platform.signals", lambda *_: socket.socket())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = await seb_run(http={"listen": address})
    assert code == 1
    (sentence,) = sentences(said)
    assert address in sentence
    assert "Traceback" not in said


def test_problems_are_found_in_groups_of_groups():
    inner = ExceptionGroup("inner", [OSError("a"), OSError("b")])
    found = run._each(ExceptionGroup("outer", [inner, OSError("c")]))
    assert [str(error) for error in found] == ["a", "b", "c"]
