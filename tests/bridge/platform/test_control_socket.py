"""How commands reach the bridge, and who may use the socket."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bridge import platform

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.fixture
async def runner():
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    yield runner
    await runner.cleanup()


def plain(runner: web.AppRunner, sock: socket.socket, stopped: Callable[[], None]) -> web.BaseSite:
    class Site(web.SockSite):
        async def stop(self) -> None:
            await super().stop()
            stopped()

    return Site(runner, sock)


async def ask(address: str) -> str:
    connector = platform.control_connector(address)
    async with aiohttp.ClientSession(connector=connector) as session:
        return await (await session.get("http://bridge/")).text()


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


async def test_only_commands_of_the_owner_reach_the_bridge(runner, state_dir):
    address = platform.control_address(state_dir)
    assert address == str(state_dir / "control.sock")
    old = os.umask(0)
    try:
        await platform.serve_control(runner, address, None, plain)
    finally:
        os.umask(old)
    assert await ask(address) == "hello"
    assert mode(address) == 0o600
    await runner.cleanup()
    assert not Path(address).exists()


async def test_a_group_may_use_it_too(runner, state_dir):
    address = platform.control_address(state_dir)
    group = subprocess.run(["id", "-gn"], capture_output=True, text=True, check=True).stdout.strip()
    await platform.serve_control(runner, address, group, plain)
    assert mode(address) == 0o660
    assert Path(address).stat().st_gid == os.getgid()


async def test_an_unknown_group_is_refused(runner, state_dir):
    with pytest.raises(ValueError, match="there is no group 'no-such-group' on this machine"):
        await platform.serve_control(
            runner, str(state_dir / "control.sock"), "no-such-group", plain
        )
    assert list(state_dir.iterdir()) == []


async def test_the_socket_of_a_dead_process_is_replaced(runner, state_dir):
    address = platform.control_address(state_dir)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(address)
    with pytest.raises(aiohttp.ClientConnectorError):
        await ask(address)
    await platform.serve_control(runner, address, None, plain)
    assert await ask(address) == "hello"


async def test_a_bridge_that_answers_is_not_replaced(runner, state_dir):
    address = platform.control_address(state_dir)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(address)
        alive.listen()
        with pytest.raises(platform.AlreadyRunning, match="a bridge already answers at"):
            await platform.serve_control(runner, address, None, plain)
    Path(address).unlink()


async def test_a_file_that_is_not_a_socket_is_not_touched(runner, state_dir):
    address = platform.control_address(state_dir)
    Path(address).write_text("precious")
    with pytest.raises(FileExistsError, match="not a socket"):
        await platform.serve_control(runner, address, None, plain)
    assert Path(address).read_text() == "precious"
    Path(address).unlink()


@pytest.fixture
def long_dir(tmp_path):
    path = tmp_path / ("x" * 60) / ("y" * 60)
    path.mkdir(parents=True)
    return path


async def test_a_path_too_long_for_the_kernel_has_a_short_and_private_one(
    runner, long_dir, short_paths
):
    address = platform.control_address(long_dir)
    assert Path(address).parent.parent == short_paths
    assert len(address) <= 100
    assert platform.control_address(long_dir) == address
    assert platform.control_address(long_dir.parent / ("z" * 60)) != address
    await platform.serve_control(runner, address, None, plain)
    assert await ask(address) == "hello"
    assert (mode(Path(address).parent), mode(address)) == (0o700, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_another_user_cannot_take_the_short_path_first(runner, long_dir, short_paths):
    address = platform.control_address(long_dir)
    trap = Path(address).parent
    trap.mkdir()
    os.chown(trap, 12345, -1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        platform.control_address(long_dir)
    with pytest.raises(PermissionError, match="belongs to another user"):
        await platform.serve_control(runner, address, None, plain)


def test_a_link_at_the_short_path_is_refused(long_dir, short_paths, tmp_path):
    trap = Path(platform.control_address(long_dir)).parent
    trap.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="belongs to another user"):
        platform.control_address(long_dir)


def test_the_user_at_the_other_end_is_known():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert platform.peer_user(here) == os.getuid()


def test_a_connection_over_tcp_has_no_user():
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = socket.create_connection(server.getsockname())
        here, _ = server.accept()
        with there, here:
            assert platform.peer_user(here) is None
