"""A collector for each test, and one that takes its time."""

from collections.abc import AsyncIterator

import pytest
from support.splunk_server import TOKEN, SplunkServer, Token, splunk_server


@pytest.fixture
async def server() -> AsyncIterator[SplunkServer]:
    async with splunk_server() as made:
        yield made


@pytest.fixture
def slow(server: SplunkServer) -> SplunkServer:
    """It accepts, and indexes when the test says so."""
    server.tokens[TOKEN] = Token(acknowledges=True)
    server.indexed = False
    return server
