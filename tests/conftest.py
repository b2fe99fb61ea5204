"""Fixtures that tests of every folder may ask for, and the settings that all of them rely on."""

import faulthandler
import os
import signal
from collections.abc import Generator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key as uncaptured
from support import fuzzing

pytest_plugins = ["support.kafka_fixtures", "support.mosquitto_fixtures"]

# A shell that runs the suite in the background ignores SIGINT, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

fuzzing.load_profile()

TEARDOWN_PATIENCE = 120
"""How long a teardown may take, in seconds, before its process shows all stacks and ends."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """End a process whose teardown hangs: pytest-timeout interrupts each test once, and no more.

    A loop that closes joins its threads, and one that never returns would stop the whole run.
    """
    stderr = item.config.stash[uncaptured]
    faulthandler.dump_traceback_later(TEARDOWN_PATIENCE, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In `make fuzz`, after everything else is deselected."""
    if fuzzing.MINUTES:
        fuzzing.divide(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
