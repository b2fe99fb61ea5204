"""A receiver for each test."""

from collections.abc import AsyncIterator

import pytest
from support.webhook_receiver import Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made
