"""Forked bridges behave like any other process, but start faster."""

import json
import signal
from importlib.metadata import version
from pathlib import Path

from support.bridge_process import stage
from support.quick_process import fork_bridge


async def test_a_forked_bridge_prints_and_exits_like_the_command(tmp_path: Path):
    log = tmp_path / "log"
    assert await (await fork_bridge(["--version"], {}, log)).wait() == 0
    assert log.read_text() == f"{version('scheduled-events-bridge')}\n"
    assert await (await fork_bridge(["run", "-c", str(tmp_path / "missing")], {}, log)).wait() == 78
    assert json.loads(log.read_text())["event"] == "bridge.failed"


async def test_a_forked_bridge_is_a_process_that_can_be_killed(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        await at.start()
        await at.polled(1)
        await at.kill()
        assert at.process.returncode == -signal.SIGKILL
        await at.start()
        await at.polled(1)
        assert await at.stop() == 0


async def test_each_fork_gets_the_current_environment(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SEB_CONFIG", str(tmp_path / "from-the-environment.yaml"))
    log = tmp_path / "log"
    assert await (await fork_bridge(["check"], {}, log)).wait() == 78
    assert "from-the-environment.yaml" in log.read_text()
