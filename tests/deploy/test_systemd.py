"""The systemd unit: judged by systemd's own tools, and run by a stand-in that speaks its protocol."""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.judge import told
from support.lacking import lacking
from support.service_manager import SEB, joined, service, settings

from bridge.platform.posix import CONFIG_FILE, SYSTEM_STATE
from bridge.simulator import Simulator

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNIT = FOLDER / "scheduled-events-bridge.service"
DROP_IN = FOLDER / "command-sinks.conf"
WATCHDOG = 1.0
"""Seconds. Only a service that hangs is judged by it: a busy machine may feed it late."""


def installed(folder: Path, *, drop_in: bool = False) -> Path:
    """The unit in a folder of its own, with a program that exists here."""
    unit = folder / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/bin/seb", str(SEB)))
    if drop_in:
        (folder / f"{UNIT.name}.d").mkdir()
        shutil.copy(DROP_IN, folder / f"{UNIT.name}.d")
    return unit


def analyze(*words: object) -> str:
    if shutil.which("systemd-analyze") is None:
        lacking("systemd-analyze")
    command = ["systemd-analyze", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("drop_in", [False, True], ids=["the unit", "with the drop-in"])
def test_systemd_finds_nothing_wrong(tmp_path, drop_in):
    assert analyze("verify", "--man=no", installed(tmp_path, drop_in=drop_in)) == ""


@pytest.mark.parametrize(
    ("drop_in", "most"), [(False, 2.0), (True, 3.0)], ids=["the unit", "with the drop-in"]
)
def test_the_exposure_is_low(tmp_path, drop_in, most):
    told = analyze("security", "--offline=true", "--no-pager", installed(tmp_path, drop_in=drop_in))
    [level] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert float(level) <= most


def test_the_unit_names_the_places_that_the_program_uses():
    unit = settings(UNIT)
    assert f"/var/lib/{unit['StateDirectory'][0]}" == str(SYSTEM_STATE)
    assert unit["EnvironmentFile"] == [f"-{CONFIG_FILE.with_name('environment')}"]
    assert "AF_UNIX" in joined(unit["RestrictAddressFamilies"]), "control socket and notify socket"
    assert "ProcSubset" not in unit, "the bridge reads the id of the boot in /proc/sys"


def configure(folder: Path, endpoint: str, **more: object) -> Path:
    config = {
        "source": {"endpoint": endpoint, "poll_interval": "200ms"},
        "state_dir": str(folder / "state"),
        "sinks": {"out": {"type": "file", "path": str(folder / "out.jsonl")}},
        "http": {"listen": None},
        **more,
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    return path


async def test_a_service_is_ready_feeds_its_watchdog_reloads_and_stops(tmp_path):
    async with Simulator() as simulator:
        config = configure(tmp_path, simulator.endpoint)
        out = tmp_path / "out.jsonl"
        async with service(UNIT, tmp_path, watchdog=WATCHDOG, SEB_CONFIG=str(config)) as systemd:
            assert await systemd.start() == 0
            await systemd.until(lambda: systemd.count("WATCHDOG=1") >= 3, "a fed watchdog")
            configure(tmp_path, simulator.endpoint, stop_grace="5s")
            await systemd.reload()
            await systemd.until(lambda: systemd.count("READY=1") == 2, "the reload")
            assert systemd.heard.index("RELOADING=1") < len(systemd.heard) - 1
            simulator.world.create(name="kept", type="Reboot", notice="1h")
            await systemd.until(lambda: out.exists() and told(out, "scheduled"), "a delivery")
            assert await systemd.stop() == 0
            assert systemd.heard[-1] == "STOPPING=1"


async def test_a_service_that_hangs_is_aborted_and_continues_where_it_was(tmp_path):
    async with Simulator() as simulator:
        config = configure(tmp_path, simulator.endpoint)
        out = tmp_path / "out.jsonl"
        async with service(UNIT, tmp_path, watchdog=WATCHDOG, SEB_CONFIG=str(config)) as systemd:
            assert await systemd.start() == 0
            systemd.process.send_signal(signal.SIGSTOP)
            simulator.world.create(name="kept", type="Reboot", notice="1h")
            await systemd.abort_when_silent()
            assert await systemd.process.wait() == -signal.SIGABRT
            assert await systemd.start() == 0
            await systemd.until(lambda: out.exists() and told(out, "scheduled"), "a delivery")
            assert await systemd.stop() == 0


async def test_a_bad_configuration_keeps_the_service_from_starting(tmp_path):
    config = configure(tmp_path, "http://127.0.0.1:9", sinks={"out": {"type": "fiel"}})
    async with service(UNIT, tmp_path, watchdog=WATCHDOG, SEB_CONFIG=str(config)) as systemd:
        assert await systemd.start() == 78
        assert "config.yaml" in systemd.log.read_text()
