"""Fixtures that tests of every folder may ask for, and the settings that all of them rely on."""

import os
import signal

import pytest
from support import fuzzing

pytest_plugins = ["support.kafka_fixtures", "support.mosquitto_fixtures"]

# A shell that runs the suite in the background ignores SIGINT, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

fuzzing.load_profile()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In `make fuzz`, after everything else is deselected."""
    if fuzzing.MINUTES:
        fuzzing.divide(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
