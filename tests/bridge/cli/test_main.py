"""`python -m bridge.cli` is `seb`."""

import subprocess
import sys


def test_the_package_runs_as_the_command_does():
    words = [sys.executable, "-m", "bridge.cli", "--version"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout[0].isdecimal()
