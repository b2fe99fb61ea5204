"""The simulated service, a poller that asks it, and a clock that the test moves."""

from datetime import datetime, timedelta

import pytest
from support.polling import restarted

from bridge.simulator import Scenario, Simulator
from bridge.source.poller import Poller


class Shifted(datetime):
    """Our own clock, which tests may set."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + cls.ahead


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("bridge.source.poller.JITTER", 0.0)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("bridge.source.poller.datetime", Shifted)
    monkeypatch.setattr(Shifted, "ahead", timedelta())
    return Shifted


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(rate_limit=None)) as made:
        yield made


@pytest.fixture
async def bridge(simulator, tmp_path):
    async with restarted(simulator, tmp_path / "journal.db") as made:
        yield made


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(Poller, "_pause", lambda *_: 0.01)
