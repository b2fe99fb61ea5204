"""What the tests start lives as long as somebody uses it, and no longer."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from support import lifeline
from support.lifeline import held


def start(lock: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, lifeline.__file__, str(lock), *command],
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_command_ends_with_its_last_user_and_its_note_is_wiped(tmp_path: Path):
    lock = tmp_path / "users.lock"
    with held(lock, fcntl.LOCK_SH):
        with held(lock, fcntl.LOCK_SH):
            lock.write_text("it is here")
            process = start(lock, "sh", "-c", "echo started; exec sleep 600")
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        assert lock.read_text() == "it is here"
    # The end of its output means that the command itself is gone, and not only who watched it.
    assert process.communicate(timeout=20) == ("", None)
    assert process.returncode < 0
    assert lock.read_text() == ""


def test_a_command_that_ends_by_itself_says_how(tmp_path: Path):
    lock = tmp_path / "users.lock"
    with held(lock, fcntl.LOCK_SH):
        lock.write_text("it is here")
        process = start(lock, "sh", "-c", "exit 3")
        process.communicate(timeout=20)
        assert process.returncode == 3
        assert lock.read_text() == ""


def test_a_command_ends_when_its_user_is_killed(tmp_path: Path):
    lock = tmp_path / "users.lock"
    holding = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_SH); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "\n"
        process = start(lock, "sleep", "600")
        user.kill()
    process.communicate(timeout=20)
    assert process.returncode < 0
