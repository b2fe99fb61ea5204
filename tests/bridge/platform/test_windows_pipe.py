"""The control pipe: its rights everywhere, the pipe itself under Wine."""

import sys

import pytest
from aiohttp import ClientSession, web

from bridge.platform import windows, windows_pipe

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="`make test-windows` runs it")


def test_only_the_owner_the_system_and_administrators_may_open_the_pipe():
    own = "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;S-1-5-21-7)"
    assert windows_pipe.pipe_rights("S-1-5-21-7", None) == own


def test_a_group_may_read_and_write_the_pipe():
    text = windows_pipe.pipe_rights("S-1-5-21-7", "S-1-5-32-545")
    assert text.endswith("(A;;0x12019f;;;S-1-5-32-545)")


@on_windows
async def test_commands_reach_the_pipe_one_after_the_other(tmp_path):
    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="alive" * 50_000)

    app = web.Application()
    app.router.add_get("/livez", alive)
    runner = web.AppRunner(app)
    await runner.setup()
    address = windows.control_address(tmp_path)
    try:
        await windows.serve_control(runner, address, "Users", None)
        for _ in range(3):
            async with (
                ClientSession(connector=windows.control_connector(address)) as session,
                session.get("http://localhost/livez") as response,
            ):
                assert await response.text() == "alive" * 50_000
    finally:
        await runner.cleanup()
