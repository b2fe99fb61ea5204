"""The environment and the process group of a command, on POSIX and on Windows."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Groups(Protocol):
    """What differs between operating systems when a program is started and ended."""

    def environment(self) -> dict[str, str]:
        """The variables that every program needs, and nothing else from our own environment."""

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `subprocess` that start a program in its own process group."""

    def end(self, leader: int, *, at_once: bool) -> None:
        """Ask a program and all its children to end, or kill them."""

    def lives(self, leader: int) -> bool:
        """Whether any process of the group is left after its leader has ended."""


class Posix:
    """A group is a session of its own."""

    def environment(self) -> dict[str, str]:
        import pwd  # noqa: PLC0415  not everywhere

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = "/"
        return {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "HOME": home}

    def options(self) -> dict[str, Any]:
        return {"start_new_session": True}

    def end(self, leader: int, *, at_once: bool) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL if at_once else signal.SIGTERM)

    def lives(self, leader: int) -> bool:
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _more_than_zombies(leader)


class Windows:
    """A group is a process tree, as far as Windows can find it."""

    def environment(self) -> dict[str, str]:
        """Include SystemRoot: without it, not even a socket can be opened."""
        root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        system = f"{root}\\System32"
        return {
            "SystemRoot": root,
            "PATH": f"{system};{root};{system}\\WindowsPowerShell\\v1.0",
            "PATHEXT": ".COM;.EXE;.BAT;.CMD",
        }

    def options(self) -> dict[str, Any]:
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}

    def end(self, leader: int, *, at_once: bool) -> None:
        """Ask (works only with a console), or kill the whole process tree."""
        if not at_once:
            with suppress(OSError):
                os.kill(leader, getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
            return
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(  # noqa: S603  a number is no input
                ["taskkill", "/T", "/F", "/PID", str(leader)],  # noqa: S607  where it is differs
                check=False,
                capture_output=True,
                timeout=5,
            )

    def lives(self, leader: int) -> bool:
        """Always False: Windows cannot find processes that outlive their leader."""
        del leader
        return False


GROUPS: Groups = Windows() if sys.platform == "win32" else Posix()


def _more_than_zombies(group: int) -> bool:
    """Whether a live process is left; without /proc, zombies count as alive."""
    found = False
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = path.read_text("latin-1").rpartition(")")[2].split()[:3]
            found = True
            if int(its_group) == group and state not in {"Z", "X"}:
                return True
    return not found
