"""Build the sink in `third_party_sink` as its author would, and unpack it for a process to find."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parent / "third_party_sink"


def install(into: Path, project: Path = SOURCE) -> Path:
    """Build its wheel and unpack it, which is all that installing a pure wheel is."""
    source, dist, site = into / "source", into / "dist", into / "site"
    shutil.copytree(project, source, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    done = subprocess.run(
        [*build, "--outdir", str(dist), str(source)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def environment(site: Path) -> dict[str, str]:
    """That of a process which has the sink installed besides what is installed already."""
    tests = str(SOURCE.parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), tests))}
