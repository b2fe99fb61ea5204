"""A bridge that is served, and a command that talks to it."""

import asyncio

import pytest
from support.command_line import parse
from support.served_bridge import bridge, config


@pytest.fixture
async def running(tmp_path):
    async with bridge(config(tmp_path)) as made:
        (tmp_path / "config.yaml").write_text(f"state_dir: {tmp_path}\nhttp: {{listen: null}}\n")
        yield made


@pytest.fixture
def seb(running, tmp_path, capsys):
    """Run a command against the running bridge: its exit code, stdout and stderr."""

    async def run(module, *words):
        args = parse(module, *words, "-c", str(tmp_path / "config.yaml"))
        code = await asyncio.to_thread(module.run, args)
        out, err = capsys.readouterr()
        return code, out, err

    return run
