"""The examples do what they say: their configurations pass the check, and the drain scripts drain."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.cloudevents import make
from support.world import published

from bridge.cli import main
from bridge.config import load
from bridge.plugins import Delivered, Place, Rejected, Unavailable
from bridge.plugins.sinks import find_sink
from sinks.command.environment import variables

EXAMPLES = Path(__file__).parents[1] / "examples"
DRAINS = sorted(EXAMPLES.glob("drain-*/drain.*"))
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$FAKE/calls"
[ ! -e "$FAKE/broken" ] || exit 1
case $1 in
    stop) echo deactivating > "$FAKE/state" ;;
    is-active) cat "$FAKE/state"; [ -e "$FAKE/stuck" ] || echo inactive > "$FAKE/state"; exit 3 ;;
esac
"""


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/config.yaml")), ids=lambda p: p.parent.name
)
def test_every_configuration_passes_the_check(path, capsys):
    assert main(["check", "-c", str(path)]) == 0
    assert "casts this VM's vote when that succeeds" in capsys.readouterr().out


@pytest.mark.parametrize("path", DRAINS, ids=lambda path: path.name)
def test_a_drain_script_reads_only_variables_that_there_are(path):
    used = set(re.findall(r"EVENT_[A-Z_]+", path.read_text("utf-8")))
    assert {"EVENT_KIND", "EVENT_AFFECTED", "EVENT_DRILL", "EVENT_SECONDS_LEFT"} <= used
    assert used <= set(variables(make(), 0))


@pytest.mark.parametrize("path", DRAINS, ids=lambda path: path.name)
def test_a_drain_script_has_balanced_brackets_and_plain_characters(path):
    text = path.read_text("ascii")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert code.count("{") == code.count("}")
    if path.suffix == ".ps1":
        assert code.count("(") == code.count(")")
        assert set(re.findall(r"exit (\d+)", code)) == {"0", "1", "75"}


posix = pytest.mark.skipif(sys.platform == "win32", reason="a shell script")


@posix
def test_a_shell_can_read_the_script():
    subprocess.run(["/bin/sh", "-n", EXAMPLES / "drain-systemd/drain.sh"], check=True)


@pytest.fixture
def machine(tmp_path):
    """A folder with a systemctl that pretends, and the example's own sink pointed at it."""
    (tmp_path / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "systemctl").chmod(0o755)
    return tmp_path


async def run(machine, event):
    config = load(EXAMPLES / "drain-systemd/config.yaml", {})
    sink: Any = config.sinks["drain"]
    program = [str(EXAMPLES / "drain-systemd/drain.sh"), *sink.argv[1:]]
    env = {"PATH": f"{machine}:/usr/bin:/bin", "FAKE": str(machine)}
    settings = type(sink).model_validate(
        {"type": "command", "argv": program, "env": env, "then": "approve"}
    )
    async with find_sink("command").open(settings, Place()) as send:
        [result] = await send([event])
    calls = machine / "calls"
    return result, calls.read_text().splitlines() if calls.exists() else []


def announced(seconds: int = 900, **data):
    due = datetime.now(UTC) + timedelta(seconds=seconds)
    return make(notBefore=due.isoformat(), **data)


@posix
async def test_an_announcement_drains_the_unit(machine):
    result, calls = await run(machine, announced())
    assert result == Delivered("orders.service is drained (inactive)", approves=True)
    assert calls[0] == "stop --no-block orders.service"
    assert set(calls[1:]) == {"is-active orders.service"}


@posix
@pytest.mark.parametrize("kind", ["completed", "canceled"])
async def test_the_end_starts_it_again(machine, kind):
    event = published()[f"azure.scheduledevents.{kind}.v1"]
    result, calls = await run(machine, event)
    assert (result.note, calls) == ("orders.service runs again", ["start orders.service"])


@posix
@pytest.mark.parametrize(
    "event",
    [
        announced(drill=True),
        announced(observer={"affected": False, "vm": "x"}),
        published()["azure.scheduledevents.source.snapshot.v1"],
    ],
    ids=["drill", "another VM", "no transition"],
)
async def test_what_does_not_touch_this_vm_stops_nothing(machine, event):
    result, calls = await run(machine, event)
    assert isinstance(result, Delivered)
    assert calls == []


@posix
async def test_a_unit_that_cannot_be_told_is_tried_again_and_one_that_hangs_is_given_up(machine):
    (machine / "broken").touch()
    assert type((await run(machine, announced()))[0]) is Unavailable
    (machine / "broken").unlink()
    (machine / "stuck").touch()
    result, _ = await run(machine, announced(-5))
    assert type(result) is Rejected
    assert "orders.service is still deactivating, and the notice is over" in str(result)
