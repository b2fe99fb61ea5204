"""A soak needs POSIX: signals, brokers in process groups, and a C library that it can stand in for."""

import sys

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]
