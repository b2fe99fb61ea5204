"""How the second process on a state directory is refused."""

from pathlib import Path

import pytest

from bridge.platform.errors import AlreadyRunning, refusal

STATE = Path("/var/lib/bridge")


@pytest.mark.parametrize(
    ("pid", "who"),
    [("4711", "process 4711"), ("", "another process"), ("-1", "another process")],
)
def test_a_refusal_names_the_process_where_the_lock_file_does(pid, who):
    assert f"a bridge is already running ({who}) on the state directory {STATE}" in str(
        refusal(STATE, pid)
    )


def test_a_refusal_says_what_to_do():
    found = refusal(STATE, "4711")
    assert isinstance(found, AlreadyRunning)
    assert str(found).endswith("stop it, or set another state_dir")
