"""Starts bridges quickly: it has imported everything they need, and forks for each one.

Each bridge is a separate process that can be killed and waited for; it only saves the time to
import the same modules again. Run as a program, it gets the number of a listening socket, and runs
for as long as its standard input is open.

A client sends one line of JSON, and gets the process id, then the exit code.
"""

import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

LATE = (
    "bridge.cli.commands.run",
    "bridge.approvals.intake",
    "bridge.approvals.decisions",
    "bridge.approvals.listeners",
    "bridge.approvals.publisher",
    "bridge.web.server",
    "cloudevents.core.formats.json",
    "cloudevents.core.v1.event",
    "bridge.drills.runner",
    "sinks.command",
    "sinks.file",
    "sinks.formats.cloudevents",
    "sinks.webhook",
    "yaml",
)
"""The modules that a bridge imports on demand."""


def serve(listener: socket.socket) -> dict[str, Any]:
    """Return the description of a bridge, in the process that becomes it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
            sys.exit()
        caller, _ = listener.accept()
        with caller:
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return fork(caller)


def fork(caller: socket.socket) -> dict[str, Any]:
    with caller.makefile("r") as said:
        wanted = json.loads(said.readline())
    pid = os.fork()
    if pid == 0:
        return wanted
    caller.sendall(b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(wanted: dict[str, Any]) -> int:
    with Path(os.devnull).open() as nothing, Path(wanted["log"]).open("ab") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    return faulty_bridge.run(wanted["faults"], wanted["words"])


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    faulty_bridge = importlib.import_module("support.faulty_bridge")
    for name in LATE:
        importlib.import_module(name)
    sys.exit(become(serve(socket.socket(fileno=int(sys.argv[1])))))
