"""`seb run`: the bridge itself."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from bridge.app.lifecycle import run as run_bridge
from bridge.app.reload import CannotStart
from bridge.common import log
from bridge.config import ConfigError, load
from bridge.journal import Newer
from bridge.platform import AlreadyRunning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the configuration")
    parser.add_argument("--once", action="store_true", help="poll once, drain, and exit")


def run(args: argparse.Namespace) -> int:
    """Run until a signal arrives."""
    try:
        log.setup(os.environ.get("SEB_LOG"))
        config = load(args.config, os.environ)
    except (ConfigError, ValueError) as error:
        return _say(error, 78)
    try:
        return asyncio.run(
            run_bridge(config, lambda: load(args.config, os.environ), once=args.once)
        )
    except* (AlreadyRunning, CannotStart, Newer, OSError) as group:
        for problem in _each(group):
            _say(problem, 1)
    return 1


def _each(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _each(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _say(error: Exception, code: int) -> int:
    for line in str(error).splitlines():
        print(f"seb: {line}", file=sys.stderr)
    return code
