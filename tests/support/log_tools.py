"""Commands set up logging for a whole process; in tests they are one of many in it."""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def log_as_before() -> Generator[None]:
    loggers = [logging.getLogger(name) for name in (None, "bridge", "sinks")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    uncaught = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = uncaught
        logging.captureWarnings(capture=False)
        for logger, level, handlers in before:
            logger.setLevel(level)
            logger.handlers[:] = handlers
