"""How many votes a second the bridge records, compared with bare SQLite commits.

Every vote is on disk before it is acknowledged, so one commit is the least that it can cost. The
flood uses unverified names: it fills the space that an event has for them, and continues.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bridge.approvals.intake import Intake
from bridge.approvals.service import ApprovalService
from bridge.common.signatures import read_key, sign
from bridge.config import Config
from bridge.core.model import Instance, ScheduledEvent
from bridge.core.state import State, Tracked
from bridge.journal import Journal
from bridge.plugins import Delivery
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status
from bridge.source.endpoint import Endpoint

AIMS = {"signed, each counts": 15, "the same again": 15, "a flood of names": 30}
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
Way = Callable[[Path, int], Awaitable[float]]


def bodies(count: int, **said: str) -> Iterator[bytes]:
    for number in range(count):
        named = {name: text % number if "%d" in text else text for name, text in said.items()}
        yield json.dumps({"eventId": EVENT_ID, "id": f"{number}", **named}).encode()


async def bare(folder: Path, count: int) -> float:
    """Seconds that SQLite alone takes, each row in a transaction of its own, in another thread."""
    return await asyncio.to_thread(_commits, folder / "bare.db", count)


def _commits(path: Path, count: int) -> float:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE vote(body TEXT)")
        began = time.perf_counter()
        for body in bodies(count, approver="a-%d"):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO vote VALUES (?)", (body,))
            db.execute("COMMIT")
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def voting_intake(folder: Path, **approvals: object) -> AsyncGenerator[Intake]:
    """An intake with one event to vote on; nothing is sent to Azure."""
    given = {"approvals": {"dry_run": True, **approvals}, "state_dir": folder}
    config = Config.model_validate(given)
    journal = Journal(folder / "journal.db")
    await journal.open()
    try:
        now = datetime.now(UTC)
        event = ScheduledEvent(EVENT_ID, "Reboot", "Scheduled", ("vm-0",), now + timedelta(hours=1))
        known = Tracked(event, life=1, announced=True, affected=True, since=now)
        await journal.commit(State(tracked={EVENT_ID: known}), [], time.time())
        identity = Identity(config, journal, Instance(name="vm-0"))
        runtime = Runtime(config, journal, identity, Status(started=time.monotonic()), "0")
        yield ApprovalService(runtime, Endpoint()).intake
    finally:
        await journal.close()


def flood(**said: str) -> Way:
    async def pour(folder: Path, count: int) -> float:
        """Seconds for unsigned votes."""
        async with voting_intake(folder) as intake:
            began = time.perf_counter()
            for body in bodies(count, **said):
                await intake.take(Delivery(body), "bus")
            return time.perf_counter() - began

    return pour


async def signed(folder: Path, count: int) -> float:
    """Seconds for votes that are signed, one voice that changes its mind each time."""
    key, allow = read_key(KEY), [{"approver": "orders", "keys": [{"hmac": KEY}]}]
    made = []
    for number, body in enumerate(bodies(count, resource="vm-0")):
        said = body.replace(b"{", b'{"decision": "%b", ' % (b"hold", b"approve")[number % 2], 1)
        found = sign([key], str(number), int(time.time()) + 1, said)
        made.append(Delivery(said, [(name, text.encode()) for name, text in found.items()]))
    async with voting_intake(folder, allow=allow) as intake:
        began = time.perf_counter()
        for each in made:
            await intake.take(each, "bus", must_sign=True)
        return time.perf_counter() - began


WAYS: dict[str, Way] = {
    "SQLite alone": bare,
    "signed, each counts": signed,
    "the same again": flood(approver="orders"),
    "a flood of names": flood(approver="a-%d"),
}


async def compare(runs: int, count: int) -> dict[str, float]:
    """Alternate, so that what else the machine does burdens all."""
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(runs):
        for name, way in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                taken[name].append(await way(Path(folder), count))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each, alternating (1)")
    parser.add_argument("--count", type=int, default=10_000, help="votes in a run (10000)")
    given = parser.parse_args()
    logging.disable()
    print(f"medians of {given.runs} runs of {given.count} votes")
    medians = asyncio.run(compare(given.runs, given.count))
    alone = medians["SQLite alone"]
    print(f"{'':20}{'votes/s':>10}{'time':>9}{'aim':>8}")
    for name, seconds in medians.items():
        aim = f"{AIMS[name]}x" if name in AIMS else ""
        print(f"{name:20}{given.count / seconds:>10.0f}{seconds / alone:>8.2f}x{aim:>8}")


if __name__ == "__main__":
    main()
