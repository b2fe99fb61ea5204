"""Make the journal of an earlier version, for tests: `python scripts/old_journal.py COMMIT`.

It runs that version of the bridge against the simulator, kills it with undelivered CloudEvents and
a vote in its journal, and packs the journal with its log into tests/data/journals.
"""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bridge.simulator import Simulator

ROOT = Path(__file__).parents[1]
PATIENCE = 30.0


def run(*command: object) -> str:
    """The output of a command that must succeed."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout  # noqa: S603  commands of this file


def install(commit: str, folder: Path) -> Path:
    """That version as it would be installed; its sources are beside it."""
    tree, site = folder / "tree", folder / "site"
    tree.mkdir()
    run("git", "-C", ROOT, "archive", "--output", folder / "tree.tar", commit)
    with tarfile.open(folder / "tree.tar") as packed:
        packed.extractall(tree, filter="data")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    run(*pip, "--target", site, tree)
    return site


def configure(folder: Path, endpoint: str, *, votes: bool) -> Path:
    """One sink that works, and one that waits."""
    (folder / "blocked").touch()
    (folder / "votes").touch()
    config = {
        "source": {"endpoint": endpoint, "poll_interval": "200ms"},
        "state_dir": str(folder / "state"),
        "sinks": {
            "ahead": {"type": "file", "path": str(folder / "ahead.jsonl")},
            "behind": {"type": "file", "path": str(folder / "blocked" / "no.jsonl")},
        },
        "http": {"listen": None},
    }
    if votes:
        source = {"type": "tail", "trust": "transport", "path": str(folder / "votes")}
        config["approvals"] = {"from": {"bus": source}}
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    return path


def start(folder: Path, site: Path, config: Path, *, votes: bool) -> subprocess.Popen[bytes]:
    """The bridge of that version; its own tests bring the source of votes."""
    faulty = folder / "tree" / "tests" / "support" / "faulty_bridge.py"
    command = [sys.executable, "-P", str(faulty), json.dumps({"tail": 1} if votes else {})]
    return subprocess.Popen(  # noqa: S603  commands of this file
        [*command, "run", "-c", str(config)],
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=(folder / "log").open("wb"),
        stderr=subprocess.STDOUT,
    )


async def until(condition: Callable[[], object], log: Path) -> None:
    """Wait for the bridge."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            sys.exit(f"the bridge did not get there; its log is {log}")
        await asyncio.sleep(0.05)


def rows(folder: Path, sql: str) -> int:
    """What a query counts, while the bridge runs."""
    path = folder / "state" / "journal.db"
    if not path.exists():
        return 0
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return int(db.execute(sql).fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


async def live(folder: Path, site: Path, *, votes: bool) -> None:
    """An event that is over, one that waits for a second vote, and a kill."""
    async with Simulator() as simulator:
        world, log = simulator.world, folder / "log"
        config = configure(folder, simulator.endpoint, votes=votes)
        process = start(folder, site, config, votes=votes)
        try:
            world.create(name="over", type="Freeze", notice="1h", started_for=None)
            await until(lambda: rows(folder, "SELECT COUNT(*) FROM tracked"), log)
            world.start("over")
            both = world.create(name="both", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
            await until(lambda: rows(folder, "SELECT COUNT(*) FROM outbox") >= 4, log)
            world.complete("over")
            await until(lambda: rows(folder, "SELECT COUNT(*) FROM ended"), log)
            if votes:
                vote = {"eventId": both.event.event_id, "approver": "orders", "resource": "vm-0"}
                with (folder / "votes").open("a") as file:
                    file.write(json.dumps({**vote, "id": "orders-1"}) + "\n")
                await until(lambda: rows(folder, "SELECT COUNT(*) FROM vote"), log)
            await until(
                lambda: rows(folder, "SELECT COUNT(*) FROM delivery WHERE sink = 'behind'"), log
            )
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def pack(folder: Path, target: Path) -> None:
    """The journal and its log, without the index."""
    with tarfile.open(target, "w:xz") as packed:
        for name in ("journal.db", "journal.db-wal"):
            member = packed.gettarinfo(folder / "state" / name, name)
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            with (folder / "state" / name).open("rb") as file:
                packed.addfile(member, file)


def main(commit: str) -> None:
    """Make one journal."""
    short = run("git", "-C", ROOT, "rev-parse", "--short=8", commit).strip()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        site = install(commit, folder)
        schema = (site / "bridge" / "journal" / "schema.py").read_text()
        version = int(schema.split("\nVERSION = ")[1].split("\n")[0])
        votes = (folder / "tree" / "tests" / "support" / "third_party_source.py").exists()
        asyncio.run(live(folder, site, votes=votes))
        target = ROOT / "tests" / "data" / "journals" / f"v{version}-{short}.tar.xz"
        target.parent.mkdir(exist_ok=True)
        pack(folder, target)
        print(target.relative_to(ROOT), target.stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1])
