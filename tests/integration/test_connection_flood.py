"""A flood of silent connections, at a bridge that may open few files."""

import asyncio
import socket
import sys
from contextlib import ExitStack, suppress

import pytest
from support.bridge_process import announce, stage
from support.ports import free_ports

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")

FILES = 128
QUIET = 64 * 1024
"""Bytes of log; without limits it is a megabyte in a second."""


def silent(stack: ExitStack, port: int) -> None:
    """A connection that says nothing. The bridge may close it whenever it wants."""
    made = stack.enter_context(socket.socket())
    made.settimeout(5)
    with suppress(OSError):
        made.connect(("127.0.0.1", port))


@pytest.mark.parametrize("key", ["listen", "probes_listen"])
async def test_silent_connections_stop_neither_polls_nor_commands_and_do_not_fill_the_log(
    tmp_path, key
):
    [port] = free_ports(1)
    http = {"listen": None, key: f"127.0.0.1:{port}"}
    async with stage(tmp_path, http=http) as at:
        await at.start(files=FILES)
        await at.until_said("http.listening")
        with ExitStack() as stack:
            for _ in range(3 * FILES):
                silent(stack, port)
            event_id = announce(at, "during-the-flood")
            await at.polled(5)
            health, (code, said) = await asyncio.gather(at.beside("health"), at.beside("events"))
            assert health == (0, "alive\n")
            assert (code, event_id in said) == (0, True)
        assert len(at.output()) < QUIET
        assert at.said("http.connections_full")
        assert await at.stop() == 0
