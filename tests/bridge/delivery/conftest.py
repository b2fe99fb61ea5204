"""A journal with two sinks, and waits that a test can afford."""

import pytest
from support.journal_tools import opened

from bridge.common import supervise


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "sink", "other") as made:
        yield made


@pytest.fixture
def hurry(monkeypatch):
    """Waits between attempts are a hundred times shorter."""
    real = supervise.backoff

    def short(attempt: int, **keys) -> float:
        return real(attempt, **keys) / 100

    monkeypatch.setattr("bridge.delivery.backoff.backoff", short)
