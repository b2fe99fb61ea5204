"""What a test does when this machine lacks the broker or the program that it needs."""

import os
from typing import NoReturn

import pytest


def lacking(reason: str) -> NoReturn:
    """Skip the test; in CI, where everything is available, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (a skip for want of it is a failure in CI)", pytrace=False)
    pytest.skip(reason)
