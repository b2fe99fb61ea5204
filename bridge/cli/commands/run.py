"""`seb run`: the bridge itself."""

import argparse
import asyncio
import logging
import os
from pathlib import Path

from bridge.app.lifecycle import run as run_bridge
from bridge.app.reload import CannotStart
from bridge.common.log import setup
from bridge.config import ConfigError, load
from bridge.journal import Newer
from bridge.platform import AlreadyRunning

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the configuration")
    parser.add_argument("--once", action="store_true", help="poll once, drain, and exit")


def run(args: argparse.Namespace) -> int:
    """Run until a signal arrives."""
    try:
        setup()
        setup(os.environ.get("SEB_LOG"))
        config = load(args.config, os.environ)
    except (ConfigError, ValueError) as error:
        return _failed(error, 78)
    try:
        return asyncio.run(
            run_bridge(config, lambda: load(args.config, os.environ), once=args.once)
        )
    except* (AlreadyRunning, CannotStart, Newer, OSError) as group:
        for problem in _each(group):
            _failed(problem, 1)
    return 1


def _each(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _each(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _failed(error: Exception, code: int) -> int:
    """Say why in the format of the log: a collector reads these lines, too."""
    for line in str(error).splitlines():
        log.error("bridge.failed", extra={"error": line, "exit_code": code})
    return code
