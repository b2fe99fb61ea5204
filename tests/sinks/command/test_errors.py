"""What the exit of a command means, and what of its output is shown."""

import sys

import pytest
from support.command_runs import command, outcome, shell

from bridge.plugins import Delivered, Rejected, Unavailable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 75", Unavailable, "it asks to be run again later (exit code 75)"),
        ("echo busy; exit 75", Unavailable, "it asks to be run again later (exit code 75): busy"),
        ("exit 1", Rejected, "exit code 1"),
        ("echo out; echo err >&2; exit 3", Rejected, "exit code 3: out\nerr"),
        ("exit 127", Rejected, "exit code 127"),
        ("no-such-program-here", Rejected, "not found"),
        ("kill -KILL $$", Unavailable, "it was ended by SIGKILL"),
        ("echo hm; kill -TERM $$", Unavailable, "it was ended by SIGTERM: hm"),
    ],
)
async def test_every_other_exit_code_says_what_happens_to_the_cloudevent(script, kind, said):
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


async def test_output_that_is_not_text_does_no_harm():
    assert await outcome(shell(r"printf '\377\376ok'")) == Delivered("\ufffd\ufffdok")


@pytest.mark.parametrize("more", [3988, 3990, 3995, 3998])
async def test_half_a_secret_where_the_output_was_cut_is_not_shown_either(more):
    script = f'printf "long before $TOKEN"; head -c {more} /dev/zero | tr "\\0" x; exit 1'
    said = str(await outcome(shell(script, env={"TOKEN": "t0p-s3cret-1"})))
    assert said.removeprefix("exit code 1: ").strip("x") in {"***", "long before ***", " ***"}
    assert said.endswith("x" * more)


async def test_a_file_that_is_not_a_program_is_unavailable(tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"\x00no program")
    empty.chmod(0o755)
    result = await outcome(command(str(empty)))
    assert (type(result), str(result)) == (Unavailable, f"{empty} cannot be run: Exec format error")
