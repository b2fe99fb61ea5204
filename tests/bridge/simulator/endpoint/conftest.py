"""A simulator with one scheduled event."""

import pytest

from bridge.simulator import Simulator


@pytest.fixture
async def simulator():
    async with Simulator() as simulator:
        simulator.world.create(type="Reboot", name="r")
        yield simulator
