"""Measure the bridge beside its baselines: `python -m bench [--only GROUP] [--json FILE]`."""

import argparse
import asyncio
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figure import Figure
from bench.report import keep, publish, table

GROUPS = ("start", "idle", "latency", "storm", "fanout", "outage", "votes", "growth")
HISTORY = Path(__file__).with_name("history.jsonl")


async def measure(group: str) -> list[Figure]:
    module = importlib.import_module(f"bench.groups.{group}")
    began = time.perf_counter()
    figures: list[Figure] = await module.figures()
    print(f"{group}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return figures


async def measure_all(groups: Sequence[str]) -> list[Figure]:
    figures: list[Figure] = []
    for group in groups:
        figures += await measure(group)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", metavar="GROUP", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--json", type=Path, default=HISTORY, help="where to append the figures")
    given = parser.parse_args()
    if given.only is not None and given.only not in GROUPS:
        print(
            f"There is no group {given.only!r}; the groups are {', '.join(GROUPS)}.",
            file=sys.stderr,
        )
        return 2
    figures = asyncio.run(measure_all([given.only] if given.only else GROUPS))
    print(table(figures))
    keep(figures, given.json)
    publish(figures, GROUPS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
