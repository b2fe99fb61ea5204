"""What every file of a release agrees on: the version, the time, and the name of the product."""

import os
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NAME = "scheduled-events-bridge"
EXTRAS = ("kafka", "mqtt", "template", "ed25519", "telemetry")
"""What a running bridge can use, whatever its configuration."""


def project(root: Path = ROOT) -> dict[str, Any]:
    """The table `project` of pyproject.toml, the only place of the version."""
    found: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def version(root: Path = ROOT) -> str:
    return str(project(root)["version"])


def epoch() -> int:
    """The time that all files get: SOURCE_DATE_EPOCH, else that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given) if given else int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def moment() -> str:
    return datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def run(*command: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """The output of a command; if it fails, its errors."""
    words = [str(word) for word in command]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "")}
    if not environment["SOURCE_DATE_EPOCH"]:
        del environment["SOURCE_DATE_EPOCH"]
    done = subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        env={**environment, **(env or {})},
        cwd=cwd,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
