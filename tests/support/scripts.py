"""The scripts of this checkout that get what the tests need."""

import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


class Unobtainable(Exception):
    """Why a script could not get what it was asked for."""


def run_script(name: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [SCRIPTS / name, *arguments], check=False, capture_output=True, text=True, timeout=600
        )
    except OSError as error:
        raise Unobtainable(f"{name} cannot run here: {error}") from error
    if done.returncode:
        raise Unobtainable(f"{name}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout.strip()
