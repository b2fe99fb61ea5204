"""A token server on loopback."""

import pytest
from support.token_server import token_server


@pytest.fixture
async def server():
    async with token_server() as served:
        yield served
