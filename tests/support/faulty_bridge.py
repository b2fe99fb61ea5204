"""Runs `seb` with built-in faults at exact places, which cannot be caused from outside.

The first argument is a JSON object of faults, the others are those of `seb`.
"""

import importlib.metadata
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bridge.app.lifecycle
import bridge.approvals.listeners
import bridge.approvals.start_requests
import bridge.cli
import bridge.delivery.dispatcher
import bridge.plugins
import bridge.source.poller
from bridge.approvals.intake import Intake
from bridge.delivery.dispatcher import Dispatcher
from bridge.journal import recovery, schema
from bridge.journal.store import Store
from bridge.metadata.client import Metadata
from bridge.plugins import Gone
from bridge.runtime.runtime import Runtime
from sinks._lines import LineFile


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def replace(owner: Any, name: str, by: object) -> None:
    """Replace an attribute of a class or a module."""
    setattr(owner, name, by)


def before_commit(number: int, *, committed: bool = False) -> None:
    """Die with the n-th transaction written, but not committed."""
    original, count = Store.transaction, itertools.count(1)

    @contextmanager
    def transaction(self: Store, **how: Any) -> Generator[Any]:
        with original(self, **how) as db:
            yield db
            last = next(count) == number
            if last and not committed:
                die()
        if last:
            die()

    replace(Store, "transaction", transaction)


def after_commit(number: int) -> None:
    """Die when the n-th transaction is committed, before its caller knows."""
    before_commit(number, committed=True)


def around_migration(number: int) -> None:
    """Die before the tables are made (1), with them written but not committed (2), or after (3)."""
    original = schema.migrate
    steps = dict(schema._MIGRATIONS)

    def migrate(connection: Any) -> None:
        if number == 1:
            die()
        if number == 2:
            connection.create_function("die", 0, die)
            schema._MIGRATIONS = {step: f"{sql} SELECT die();" for step, sql in steps.items()}
        original(connection)
        if number == 3:
            die()

    schema.migrate = migrate


def around_set_aside(number: int) -> None:
    """Die while a journal is set aside: before (1) or after (2) the log has its second name, with
    the database renamed (3), with the log under one name (4), or with all done (5).
    """
    duplicate, rename, unlink, forget = (
        recovery._duplicate,
        Path.rename,
        Path.unlink,
        recovery._forget,
    )

    def dying(place: int, original: Any, *, first: bool = False) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            if first and number == place:
                die()
            result = original(*given, **named)
            if number == place + first:
                die()
            return result

        return step

    replace(recovery, "_duplicate", dying(1, duplicate, first=True))
    replace(Path, "rename", dying(3, rename))
    replace(Path, "unlink", dying(4, unlink))
    replace(recovery, "_forget", dying(5, forget))


def after_send(number: int) -> None:
    """Die when the sink has the n-th batch, before it is recorded in the journal."""
    original, count = Dispatcher._judge, itertools.count(1)

    async def judge(self: Dispatcher, rows: Any, results: Any) -> Any:
        if next(count) == number:
            die()
        return await original(self, rows, results)

    replace(Dispatcher, "_judge", judge)


def around_vote(number: int) -> None:
    """Die when a sink approves and the vote is not cast (1), or is cast and nothing settled (2)."""
    original = bridge.delivery.dispatcher.cast

    async def cast(rows: Any, results: Any, *given: Any) -> Any:
        approves = any(getattr(result, "approves", False) for result in results)
        if approves and number == 1:
            die()
        after = await original(rows, results, *given)
        if approves:
            die()
        return after

    replace(bridge.delivery.dispatcher, "cast", cast)


def around_settle(number: int) -> None:
    """Die when the first delivery to `left` is settled: before (1) or after (2) the commit."""
    original, transaction = Store.settle, Store.transaction

    def settle(self: Store, sink: str, *given: Any) -> None:
        if sink == "left" and number == 1:
            replace(Store, "transaction", dying)
        original(self, sink, *given)
        if sink == "left":
            die()

    @contextmanager
    def dying(self: Store, **how: Any) -> Generator[Any]:
        with transaction(self, **how) as db:
            yield db
            die()

    replace(Store, "settle", settle)


def around_drop(number: int) -> None:
    """Die while a dead letter is dropped: before (1) or after (2) the first commit."""
    original, drop = Store.transaction, Runtime.drop
    dropping = threading.Event()

    @contextmanager
    def transaction(self: Store, **how: Any) -> Generator[Any]:
        with original(self, **how) as db:
            yield db
            if dropping.is_set() and number == 1:
                die()
        if dropping.is_set():
            die()

    async def dying(self: Runtime, *given: Any, **named: Any) -> bool:
        dropping.set()
        return await drop(self, *given, **named)

    replace(Store, "transaction", transaction)
    replace(Runtime, "drop", dying)


def gone(flag: str) -> None:
    """While *flag* exists, the file sink `left` reports that its receiver wants nothing more."""
    _while(flag, Gone("it was unsubscribed"))


def down(flag: str) -> None:
    """While *flag* exists, the file sink `left` fails at every batch."""
    _while(flag, OSError("the receiver is down"))


def _while(flag: str, problem: Exception) -> None:
    original = LineFile.append

    def append(self: LineFile, lines: bytes) -> None:
        if self.path.stem == "left" and Path(flag).exists():
            raise problem
        original(self, lines)

    replace(LineFile, "append", append)


def half_line(number: int) -> None:
    """Die in the middle of the n-th write to a file."""
    original, count = LineFile._write, itertools.count(1)

    def write(self: LineFile, descriptor: int, lines: bytes) -> None:
        if next(count) == number:
            os.write(descriptor, lines[: len(lines) * 2 // 3])
            die()
        original(self, descriptor, lines)

    replace(LineFile, "_write", write)


def pages(limit_file: str) -> None:
    """A journal that may have as many pages as the file says at the moment; no file: no limit."""
    original = Store.transaction

    @contextmanager
    def transaction(self: Store, **how: Any) -> Generator[Any]:
        given = Path(limit_file)
        most = int(given.read_text()) if given.exists() else 1 << 30
        if self.connection.execute("PRAGMA database_list").fetchone()[2]:
            self.connection.execute(f"PRAGMA max_page_count = {most}")
        with original(self, **how) as db:
            yield db

    replace(Store, "transaction", transaction)


def tail(_: int) -> None:
    """Have the approval source of `third_party_source`, as if it were installed."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from support.third_party_source import register  # noqa: PLC0415

    register()


def around_ballot(number: int) -> None:
    """Die around the transactions of an approval: odd before, even after the commit of the n-th.

    They are those that record votes, then that of the last look, then that of the grant.
    """
    original, counted, count = Store.transaction, [False], itertools.count(1)

    @contextmanager
    def transaction(self: Store, **how: Any) -> Generator[Any]:
        reached = counted[0] and next(count) == (number + 1) // 2
        with original(self, **how) as db:
            yield db
            if reached and number % 2:
                die()
        if reached:
            die()

    def counting(work: Any) -> Any:
        def wrapped(*given: Any, **named: Any) -> Any:
            counted[0] = True
            try:
                return work(*given, **named)
            finally:
                counted[0] = False

        return wrapped

    replace(Store, "transaction", transaction)
    for name in ("_record_all", "_record_local"):
        replace(Intake, name, counting(getattr(Intake, name)))
    start_requests = bridge.approvals.start_requests
    for name in ("ask", "mark"):
        setattr(start_requests, name, counting(getattr(start_requests, name)))


def alone(_: int) -> None:
    """Take one message at a time, even if more have arrived."""
    bridge.approvals.listeners.MOST = 1


def after_ack(number: int) -> None:
    """Die after the n-th acknowledgment of the source of `tail`."""
    from support import third_party_source  # noqa: PLC0415

    count = itertools.count(1)
    third_party_source.acknowledged = lambda: die() if next(count) == number else None


def around_post(number: int) -> None:
    """Die before the POST to Azure (1), after its answer but before it is recorded (2), or after
    the event was marked but before the POST (3).
    """
    original = Metadata.approve

    async def approve(self: Metadata, choose: Any, *given: Any) -> Any:
        async def marked() -> Any:
            await choose()
            die()

        if number == 1:
            die()
        answer = await original(self, marked if number == 3 else choose, *given)
        die()
        return answer

    replace(Metadata, "approve", approve)


def user(number: int) -> None:
    """Continue as a user that is not root.

    Import everything now: that user may not be able to read the files later.
    """
    late = (
        "bridge.cli.commands.run",
        "bridge.web.server",
        "yaml",
        "cloudevents.core.formats.json",
        "bridge.source.announcements",
        "bridge.drills.runner",
        "bridge.approvals.decisions",
        "bridge.approvals.listeners",
        "bridge.core.observer",
        "bridge.delivery.workers",
        "bridge.runtime.http_address",
        "resource",
    )
    codecs = [f"encodings.{name}" for name in ("ascii", "idna", "latin_1", "utf_8_sig")]
    for name in (*late, *codecs):
        importlib.import_module(name)
    for group in (bridge.plugins.sinks.SINKS, bridge.plugins.formats.FORMATS):
        for point in bridge.plugins.entry_points.installed(group).values():
            point.load()
    release = importlib.metadata.version("scheduled-events-bridge")
    replace(importlib.metadata, "version", lambda _: release)
    os.setgroups([])
    os.setgid(number)
    os.setuid(number)


def jitter(seconds: float) -> None:
    """How much later than configured an outage may be published."""
    bridge.source.poller.JITTER = seconds


def backoff(seconds: float) -> None:
    """The longest wait after a bad answer."""
    bridge.source.poller.LONGEST_BACKOFF = seconds


FAULTS = {
    each.__name__: each
    for each in (
        before_commit,
        after_commit,
        around_migration,
        around_set_aside,
        after_send,
        around_vote,
        around_settle,
        around_drop,
        gone,
        down,
        half_line,
        pages,
        user,
        tail,
        around_ballot,
        alone,
        after_ack,
        around_post,
        jitter,
        backoff,
    )
}


def run(faults: dict[str, Any], words: Sequence[str]) -> int:
    """`seb` with these words; the exit code."""
    for name, value in faults.items():
        FAULTS[name](value)
    return bridge.cli.main(words)


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1]), sys.argv[2:]))
