"""A served bridge that takes votes."""

import pytest
from support.voting_bridge import polls

from bridge.cli.commands import approve


@pytest.fixture
async def open_polls(tmp_path):
    async with polls(tmp_path) as made:
        yield made


@pytest.fixture
def voting(open_polls, capsys):
    """Run `seb approve`, `hold` or `release`: its exit code, stdout and stderr."""

    async def run(command, *words):
        code = await open_polls.run(approve, command, *words)
        return code, *capsys.readouterr()

    return run
