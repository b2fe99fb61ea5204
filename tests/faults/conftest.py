"""Kills, faults and damage as POSIX systems have them."""

import sys

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]
