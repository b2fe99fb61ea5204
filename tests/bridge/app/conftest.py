"""A simulated service, a directory with a configuration for it, and a port that is taken."""

import socket

import pytest
from support.running_app import Place

from bridge.simulator import Scenario, Simulator


@pytest.fixture
async def simulator():
    async with Simulator(Scenario()) as made:
        yield made


@pytest.fixture
def place(tmp_path, simulator):
    made = Place(tmp_path, simulator.endpoint)
    made.write()
    return made


@pytest.fixture
def taken():
    """A port that is already in use."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]
