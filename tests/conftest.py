"""Fixtures that tests of every folder may ask for, and the settings that all of them rely on."""

import contextlib
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

TEST_PATIENCE, TEARDOWN_PATIENCE = 420, 120
"""How long a test and its teardown may take, in seconds, before the process ends."""


@contextlib.contextmanager
def _watched(item: pytest.Item, patience: float) -> Generator[None]:
    """End a process that hangs, and show all stacks first, whatever holds the interpreter.

    pytest-timeout interrupts a test once, in Python code. A thread that never returns, which the
    event loop joins when it closes, or a lock inside the interpreter would stop the whole run.
    """
    stderr = item.config.stash[uncaptured]
    faulthandler.dump_traceback_later(patience, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with contextlib.nullcontext() if fuzzing.MINUTES else _watched(item, TEST_PATIENCE):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    with _watched(item, TEARDOWN_PATIENCE):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In `make fuzz`, after everything else is deselected."""
    if fuzzing.MINUTES:
        fuzzing.divide(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
