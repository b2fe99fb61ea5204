"""The simulated service, a poller that asks it, and a clock that the test moves."""

import pytest
from support.clock import ShiftedClock
from support.polling import restarted

from bridge.simulator import Scenario, Simulator
from bridge.source.poller import Poller


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("bridge.source.poller.JITTER", 0.0)


@pytest.fixture
def clock():
    return ShiftedClock()


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(rate_limit=None)) as made:
        yield made


@pytest.fixture
async def bridge(simulator, tmp_path, clock):
    async with restarted(simulator, tmp_path / "journal.db", clock=clock) as made:
        yield made


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(Poller, "_pause", lambda *_: 0.01)
