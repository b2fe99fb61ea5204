"""`make mutants`: breaks one promise at a time in a copy of the sources; each error must be found."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mutants.mutations import MUTATIONS, Mutation, Outdated, command

ROOT = Path(__file__).parents[2]
COPIED = ("bridge", "sinks", "schemas", "tests", "examples", "docs", "scripts")
AT_ONCE = 2
PATIENCE = 300.0
"""How long a check may take; one that takes longer has not found the error."""
_SAID = ("BROKEN: ", " failed in ")
"""With this the model or a test says that a promise is broken; else the check itself went wrong."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation: whether it was found, and if not, why."""

    mutation: Mutation
    caught: bool
    seconds: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        one, what = self.mutation, "caught" if self.caught else "SURVIVED"
        where = (
            one.caught_by.rpartition("::")[2] if "/" in one.caught_by else f"model {one.caught_by}"
        )
        row = f"| {one.breaks} | {one.path} | {where} | {what} | {self.seconds:.0f} |"
        return f"{row}\n{self.why}" if self.why else row


def copied(folder: Path) -> Path:
    """A copy of what the checks need."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def checked(root: Path, check: str) -> tuple[int | None, str]:
    """The exit code, and the last lines that the check wrote; None if it took too long."""
    paths = os.pathsep.join([str(root), str(root / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command(check), cwd=root, env=environment, check=False, capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "It took too long."
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-15:])


def tried(mutation: Mutation, *, show: bool) -> Verdict:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = copied(Path(folder))
        try:
            mutation.apply(root)
        except Outdated as error:
            return Verdict(mutation, caught=False, why=f"The mutation is outdated: {error}.")
        code, output = checked(root, mutation.caught_by)
    caught = code == 1 and any(said in output for said in _SAID)
    why = output if show or not caught else ""
    return Verdict(mutation, caught, time.monotonic() - began, why)


def unfit(chosen: Iterable[Mutation]) -> list[str]:
    """The checks that fail without any error: they would prove nothing.

    Of the model, the small world is enough: `make model` explores the others.
    """
    checks = dict.fromkeys(one.caught_by if "/" in one.caught_by else "small" for one in chosen)
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = copied(Path(folder))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = list(pool.map(partial(checked, root), checks))
    found = zip(checks, done, strict=True)
    return [f"{check} fails without any error:\n{why}" for check, (code, why) in found if code != 0]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="TEXT", help="only those that contain it")
    parser.add_argument("--show", action="store_true", help="show what each check wrote")
    given = parser.parse_args(words)
    chosen = [one for one in MUTATIONS if all(word in one.breaks for word in given.words)]
    if problems := unfit(chosen):
        print(*problems, sep="\n")
        return 1
    print(
        "| broken promise | where | check | result | seconds |\n|---|---|---|---|---|", flush=True
    )
    survived = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(partial(tried, show=given.show), chosen):
            print(verdict, flush=True)
            survived += not verdict.caught
    print(f"{len(chosen)} mutants, {survived} survived")
    return int(bool(survived) or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
