"""A release, built twice in two folders: every file has the same bytes. The SBOM keeps to the schema of CycloneDX.

It runs as a release does, but on stand-ins for the CPython and the base image. CPYTHON and BASE name others.
"""

import filecmp
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from proofs.image import ENVIRONMENT, builder
from proofs.roots import ROOT, command, epoch, snapshot

SCHEMAS = "cyclonedx-python-lib[json-validation]==11.12.0"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(found) if found else 0)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="proof-") as made:
        folder = Path(made)
        trees = [snapshot(folder / "tree"), snapshot(folder / "another" / "tree")]
        now = epoch()
        first = build(trees[0], folder / "first", now)
        second = build(trees[1], folder / "second", now)
        sums = [(folder / "SHA256SUMS").read_text() for folder in (first, second)]
        print(sums[0], flush=True)
        names = sorted(path.name for path in first.iterdir())
        _, different, odd = filecmp.cmpfiles(first, second, names, shallow=False)
        assert (different, odd) == ([], []), f"{different} {odd}\n{sums[1]}"
        assert sums[0] == sums[1]
        command("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=first)
        [listed] = first.glob("*.cdx.json")
        validate(listed)
        print(f"  the same bytes twice: {len(names)} files", flush=True)


def build(tree: Path, out: Path, now: str) -> Path:
    began = time.monotonic()
    python = os.environ.get("CPYTHON") or command(ROOT / "scripts" / "stand-in-python").strip()
    env = {
        **ENVIRONMENT,
        **builder(),
        "PYTHONPATH": str(tree),
        "SOURCE_DATE_EPOCH": now,
    }
    command(sys.executable, "-m", "release", "--python", python, "--out", out, env=env, cwd=tree)
    print(f"  {time.monotonic() - began:6.1f} s  a release in {out.name}", flush=True)
    return out


def validate(listed: Path) -> None:
    """By the schema that CycloneDX publishes, in an environment of its own in the cache."""
    parts = json.loads(listed.read_text())["components"]
    assert {"cpython", "aiohttp", "aiokafka", "cryptography"} <= {one["name"] for one in parts}
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "scheduled-events-bridge" / "cyclonedx-11.12.0"
    if not (folder / "complete").exists():
        command(sys.executable, "-m", "venv", "--clear", folder)
        command(folder / "bin" / "python", "-m", "pip", "install", "--quiet", SCHEMAS)
        (folder / "complete").touch()
    command(folder / "bin" / "python", "-c", VALIDATE, listed)
    print(f"  SBOM: {len(parts)} components, valid CycloneDX 1.6", flush=True)
