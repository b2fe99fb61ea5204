"""`make model`: explores all bounded worlds, or those that are named, and prints what was found."""

import argparse
import sys
from multiprocessing import get_context

from model.explore import Explorer, Report
from model.worlds import SMALL, WORLDS

AT_ONCE = 2


def explored(name: str) -> Report:
    [world] = [one for one in (SMALL, *WORLDS) if one.name == name]
    return Explorer(world).run()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help="all of them by default")
    names = parser.parse_args(words).worlds or [one.name for one in WORLDS]
    broken = states = transitions = 0
    with get_context("fork").Pool(min(AT_ONCE, len(names)), maxtasksperchild=1) as pool:
        for report in pool.imap_unordered(explored, names, chunksize=1):
            print(report, flush=True)
            broken += bool(report.problems)
            states, transitions = states + report.states, transitions + report.transitions
    print(f"{states} states and {transitions} transitions in {len(names)} worlds, {broken} broken")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
