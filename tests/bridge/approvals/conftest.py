"""The simulated group that most tests of approvals vote in."""

import pytest
from support.bridge import group, plan


@pytest.fixture
async def two(tmp_path):
    """Two VMs, and an event that is about both of them and starts as soon as it is approved."""
    async with group(tmp_path, "vm-0", "vm-1") as made:
        plan(made)
        yield made
