"""Real commands: what their exit means, what they are given, and that none is left behind."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from support.cloudevents import LARGEST, make
from support.until import until

from bridge.plugins import Delivered, Place, Rejected, Unavailable, find_sink
from sinks.command import process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")

plugin = find_sink("command")


def command(*argv, **keys):
    return plugin.settings.model_validate({"type": "command", "argv": list(argv), **keys})


def shell(script: str, **keys):
    return command("/bin/sh", "-c", script, **keys)


async def outcome(settings, *cloudevents):
    async with asyncio.timeout(20), plugin.open(settings, Place()) as send:
        results = await send(cloudevents or [make()])
    return results if cloudevents else results[0]


def running_still(pid: int) -> bool:
    """A zombie has ended, even if nobody has asked yet how."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 75", Unavailable, "it asks for another time (exit code 75)"),
        ("echo busy; exit 75", Unavailable, "it asks for another time (exit code 75): busy"),
        ("exit 1", Rejected, "exit code 1"),
        ("echo out; echo err >&2; exit 3", Rejected, "exit code 3: out\nerr"),
        ("exit 127", Rejected, "exit code 127"),
        ("no-such-program-here", Rejected, "not found"),
        ("kill -KILL $$", Unavailable, "it was ended by SIGKILL"),
        ("echo hm; kill -TERM $$", Unavailable, "it was ended by SIGTERM: hm"),
    ],
)
async def test_every_exit_but_0_says_what_is_to_become_of_it(script, kind, said):
    result = await outcome(shell(script))
    assert type(result) is kind
    assert said in str(result)


async def test_what_a_successful_command_says_is_a_note():
    assert await outcome(shell("exit 0")) is None
    assert await outcome(shell("echo; echo ' drained 3 jobs '")) == Delivered("drained 3 jobs")


async def test_then_approve_casts_a_vote_on_0_alone():
    assert await outcome(shell("exit 0", then="approve")) == Delivered(approves=True)
    noted = Delivered("done", approves=True)
    assert await outcome(shell("echo done", then="approve")) == noted
    assert type(await outcome(shell("exit 1", then="approve"))) is Rejected


async def test_the_end_of_a_long_output_is_kept():
    many = shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 2")
    result = str(await outcome(many))
    assert result.startswith("exit code 2: ")
    assert result.endswith("\nline 2999")
    assert len(result) <= 4096


async def test_output_that_is_no_text_does_no_harm():
    assert await outcome(shell(r"printf '\377\376ok'")) == Delivered("\ufffd\ufffdok")


async def test_a_command_need_not_read_what_it_is_given():
    assert await outcome(command("true"), make(size=LARGEST)) == [None]
    assert await outcome(shell("exec <&-; exit 0"), make(size=LARGEST)) == [None]


async def test_it_gets_the_format_that_is_asked_for(tmp_path, monkeypatch):
    path, event = tmp_path / "got", make()
    assert await outcome(shell(f"cat > {path}", format="cloudevents"), event) == [None]
    assert path.read_bytes() == event.body


async def test_a_command_that_takes_too_long_is_stopped_with_all_that_it_started(tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo begun; wait"
    result = await outcome(shell(script, timeout="300ms"))
    assert type(result) is Unavailable
    assert str(result) == "it ran for longer than 300ms and was stopped: begun"
    child = int((tmp_path / "child").read_text())
    await until(lambda: not running_still(child))


async def test_it_is_asked_to_end_before_it_is_ended(tmp_path):
    script = f"trap 'touch {tmp_path}/tidied; exit 0' TERM; sleep 60 & wait"
    assert type(await outcome(shell(script, timeout="300ms"))) is Unavailable
    assert (tmp_path / "tidied").exists()


async def test_one_that_will_not_hear_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE", 0.2)
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    assert type(await outcome(shell(script, timeout="300ms"))) is Unavailable
    assert not running_still(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("hurried", [False, True])
async def test_cancelled_it_leaves_nobody_behind(tmp_path, monkeypatch, hurried):
    monkeypatch.setattr(process, "GRACE", 10.0 if hurried else 0.2)
    script = (
        f"trap '' TERM; sleep 60 & echo $! $$ > {tmp_path}/p; mv {tmp_path}/p {tmp_path}/pids; wait"
    )
    job = process.Task(["/bin/sh", "-c", script], b"", {"PATH": os.defpath}, "/")
    task = asyncio.create_task(process.run(job, 60))
    await until((tmp_path / "pids").exists)
    task.cancel()
    if hurried:
        await asyncio.sleep(0.1)
        task.cancel()
    began = time.monotonic()
    await asyncio.wait({task})
    assert task.cancelled()
    assert time.monotonic() - began < 8
    for pid in (tmp_path / "pids").read_text().split():
        await until(lambda pid=pid: not running_still(int(pid)))


async def test_a_daemon_that_it_leaves_on_purpose_holds_nobody_up(tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo started"
    assert await outcome(shell(script)) == Delivered("started")
    daemon = int((tmp_path / "pid").read_text())
    assert running_still(daemon)
    os.kill(daemon, 9)


async def test_it_sees_neither_our_descriptors_nor_our_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SEB_TOKEN", "ours")
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    result = await outcome(shell("echo /proc/self/fd/*; env | cut -d= -f1"))
    os.close(reader)
    os.close(writer)
    words = result.note.split()
    assert f"/proc/self/fd/{writer}" not in words
    names = {word for word in words if "/" not in word and not word.startswith("EVENT_")}
    assert names == {"PATH", "LANG", "HOME", "PWD"}


async def test_secrets_are_read_again_for_each_run_and_never_repeated(tmp_path):
    token = tmp_path / "token"
    token.write_text("first-secret\n")
    settings = shell('echo "$TOKEN $STAGE"; cat > /dev/null; exit 1', env={"TOKEN": {"file": str(token)}, "STAGE": "prod"})  # fmt: skip
    assert str(await outcome(settings)) == "exit code 1: *** prod"
    token.write_text("another-secret\n")
    seen = shell('[ "$TOKEN" = another-secret ]', env={"TOKEN": {"file": str(token)}})
    assert await outcome(seen) is None
    token.unlink()
    with pytest.raises(Unavailable, match=r"env: cannot read a file: .*token"):
        await outcome(settings)


@pytest.mark.parametrize("more", [3988, 3990, 3995, 3998])
async def test_half_a_secret_where_the_output_was_cut_is_not_shown_either(more):
    script = f'printf "long before $TOKEN"; head -c {more} /dev/zero | tr "\\0" x; exit 1'
    said = str(await outcome(shell(script, env={"TOKEN": "t0p-s3cret-1"})))
    assert said.removeprefix("exit code 1: ").strip("x") in {"***", "long before ***", " ***"}
    assert said.endswith("x" * more)


async def test_it_runs_where_it_is_told_to(tmp_path):
    assert await outcome(command("pwd")) == Delivered("/")
    assert await outcome(command("pwd", cwd=str(tmp_path))) == Delivered(str(tmp_path))


async def test_as_many_run_at_once_as_allowed(tmp_path):
    meet = f"""touch {tmp_path}/$EVENT_CLOUDEVENT_ID
    while [ $(ls {tmp_path} | wc -l) -lt 3 ]; do sleep 0.01; done"""
    assert await outcome(shell(meet, concurrency=3), make(1), make(2), make(3)) == [None] * 3
    alone = f"mkdir {tmp_path}/busy || exit 1; sleep 0.02; rmdir {tmp_path}/busy"
    assert await outcome(shell(alone), make(1), make(2), make(3)) == [None] * 3


def unusable(tmp_path) -> dict[str, tuple]:
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    plain.write_text("#!/bin/sh\n")
    empty.write_bytes(b"\x00no program")
    empty.chmod(0o755)
    return {
        "missing": (command(str(tmp_path / "none")), f"argv: there is no {tmp_path}/none"),
        "name": (command("no-such-thing"), "argv: there is no program no-such-thing on PATH"),
        "mode": (command(str(plain)), f"argv: {plain} is not a program that may be run"),
        "cwd": (command("true", cwd=str(plain)), f"cwd: {plain} is not a directory"),
    }


@pytest.mark.parametrize("what", ["missing", "name", "mode", "cwd"])
async def test_what_an_operator_can_mend_is_unavailable_and_said_by_the_check_too(tmp_path, what):
    settings, said = unusable(tmp_path)[what]
    with pytest.raises(Unavailable) as entering:
        await outcome(settings)
    assert str(entering.value).startswith(said)
    with pytest.raises(Unavailable) as checking:
        await plugin.check(settings, Place())
    assert str(checking.value) == str(entering.value)


async def test_a_file_that_is_no_program_is_unavailable(tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"\x00no program")
    empty.chmod(0o755)
    result = await outcome(command(str(empty)))
    assert (type(result), str(result)) == (Unavailable, f"{empty} cannot be run: Exec format error")


async def test_the_check_names_the_program_that_it_found():
    said = await plugin.check(command("sh"), Place())
    assert said.endswith("/sh is there and may be run")
