"""Bridges that are served, with and without tokens, and certificates for their clients."""

import pytest
from support.client_certificates import Files
from support.guarded_bridge import TOKENS
from support.served_bridge import bridge, config


@pytest.fixture
async def running(tmp_path):
    async with bridge(config(tmp_path, probes_listen="127.0.0.1:0")) as made:
        yield made


@pytest.fixture
async def guarded(tmp_path):
    async with bridge(config(tmp_path, tokens=TOKENS, probes_listen="127.0.0.1:0")) as made:
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files.write(tmp_path_factory.mktemp("certificates"))
