"""Where the journals of these tests are, and an open store."""

import pytest
from support.journal_tools import open_store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def store(tmp_path):
    made = open_store(tmp_path / "journal.db")
    yield made
    made.close()
