"""What goes wrong on every system: a second process in one state directory, and services."""

from pathlib import Path

LOCK_FILE = "bridge.lock"


class AlreadyRunning(Exception):
    """Another bridge uses this state directory."""


class ServiceError(Exception):
    """The service of the operating system cannot be changed, and why."""


def refusal(state_dir: Path, pid: str) -> AlreadyRunning:
    who = f"process {pid}" if pid.isdecimal() else "another process"
    return AlreadyRunning(
        f"a bridge is already running ({who}) on the state directory {state_dir}; "
        "stop it, or set another state_dir"
    )
