"""What `seb check --connect` proves of a command."""

import sys

import pytest
from support.command_runs import command, outcome, plugin
from support.results import proved

from bridge.plugins import Place, Unavailable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def unusable(tmp_path) -> dict[str, tuple]:
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    plain.write_text("#!/bin/sh\n")
    empty.write_bytes(b"\x00no program")
    empty.chmod(0o755)
    return {
        "missing": (command(str(tmp_path / "none")), f"argv: {tmp_path}/none does not exist"),
        "name": (command("no-such-thing"), "argv: program no-such-thing is not on PATH"),
        "mode": (command(str(plain)), f"argv: {plain} is not a program that this user may run"),
        "cwd": (command("true", cwd=str(plain)), f"cwd: {plain} is not a directory"),
    }


@pytest.mark.parametrize("what", ["missing", "name", "mode", "cwd"])
async def test_what_an_operator_can_fix_is_unavailable_and_the_check_says_so_too(tmp_path, what):
    settings, said = unusable(tmp_path)[what]
    with pytest.raises(Unavailable) as entering:
        await outcome(settings)
    assert str(entering.value).startswith(said)
    with pytest.raises(Unavailable) as checking:
        await proved(plugin, settings, Place())
    assert str(checking.value) == str(entering.value)


async def test_the_check_names_the_program_that_it_found():
    said = await proved(plugin, command("sh"), Place())
    assert said.endswith("/sh exists and may be run")
