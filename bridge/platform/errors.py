"""One process per state directory: the error, and the lock file that names the process."""

from pathlib import Path

LOCK_FILE = "bridge.lock"


class AlreadyRunning(Exception):
    """Another bridge uses this state directory."""


def refusal(state_dir: Path, pid: str) -> AlreadyRunning:
    who = f"process {pid}" if pid.isdecimal() else "another process"
    return AlreadyRunning(
        f"a bridge is already running ({who}) on the state directory {state_dir}; "
        "stop it, or set another state_dir"
    )
