"""`make soak`: plays a program, judges it, writes the report, and shrinks a failing program.

SEED chooses the program, MINUTES its length, PROGRAM a file of one, OUT the folder, NODES the number
of Kafka nodes, and SHRINK how many minutes a failing program may be shrunk; 0 turns that off.
"""

import asyncio
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import pytest
from soak import conductor, program
from soak.judge import verdicts
from soak.ledger import Ledger
from soak.page import page
from soak.program import Program
from soak.report import text
from soak.rulings import Breach
from soak.shrink import shrink


def wanted() -> Program:
    file = os.environ.get("PROGRAM")
    if file:
        return program.loads(Path(file).read_text())
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    minutes = float(os.environ.get("MINUTES") or 10)
    return program.write(seed, minutes * 60, int(os.environ.get("NODES") or 3))


def place() -> Path:
    named = os.environ.get("OUT")
    if not named:
        return Path(tempfile.mkdtemp(prefix="soak-"))
    folder = Path(named).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"OUT must be a new or an empty folder, and {folder} is not")
    return folder


def perform(play: Program, folder: Path) -> list[Breach]:
    """Play it, and keep everything in the folder; the breaches."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.json").write_text(play.dumps())
    ledger: Ledger = asyncio.run(conductor.run(play, folder, say))
    found = verdicts(ledger)
    (folder / "ledger.json").write_text(ledger.dumps())
    (folder / "report.txt").write_text(text(ledger, found))
    (folder / "report.html").write_text(page(ledger, found))
    return [breach for each in found.values() for breach in each]


def say(line: str) -> None:
    print(line, flush=True)


def shorten(play: Program, breaches: list[Breach], folder: Path) -> None:
    minutes = float(os.environ.get("SHRINK") or play.seconds / 60)
    give_up = time.monotonic() + minutes * 60
    if minutes <= 0:
        return
    say(f"Looking for a shorter program that fails too, for {minutes:.0f} minutes at most")
    tries = iter(range(1, 1000))

    def fails(shorter: Program) -> bool:
        number = next(tries)
        failed = bool(perform(shorter, folder / "shrinking" / f"{number}"))
        say(f"Try {number}: {len(shorter.faults)} faults {'fail' if failed else 'pass'}")
        return failed

    shortest = shrink(play, breaches, fails, lambda: time.monotonic() > give_up)
    (folder / "shortest.json").write_text(shortest.dumps())
    say(f"{len(shortest.faults)} faults are left:")
    for fault in shortest.faults:
        say(f"  {fault}")
    say(f"Play them again: PROGRAM={folder / 'shortest.json'} make soak")


def main() -> int:
    play, folder = wanted(), place()
    say(f"Seed {play.seed}, {play.seconds / 60:.1f} minutes; everything is kept in {folder}")
    try:
        breaches = perform(play, folder)
    except pytest.skip.Exception as lacking:
        say(f"This machine lacks something: {lacking}")
        return 2
    say((folder / "report.txt").read_text())
    say(f"The page: {folder / 'report.html'}")
    if breaches:
        shorten(play, breaches, folder)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
