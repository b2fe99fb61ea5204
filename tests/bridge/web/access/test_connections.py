"""How many connections a listener takes, and how long each may be silent."""

import asyncio
import errno
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web
from support.client_certificates import Files
from support.until import until

from bridge.web.access.connections import Connections, LimitedSite, listen


@dataclass
class Site:
    """A server with two paths, `/` and `/wait`, which answers once *released*."""

    connections: Connections
    address: tuple[str, int]
    released: asyncio.Event
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.writers.append(writer)
        return reader, writer

    async def silent(self, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connections that say nothing, once the server has taken all of them."""
        made = [await self.connect() for _ in range(count)]
        await until(lambda: len(self.connections) == count, "connections")
        return made

    async def get(self, path: str = "/", scheme: str = "http") -> str:
        host, port = self.address
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"{scheme}://{host}:{port}{path}", ssl=False)
            return await answer.text()


@asynccontextmanager
async def served(connections: Connections, tls: ssl.SSLContext | None = None):
    released = asyncio.Event()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def wait(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response(text="at last")

    app = web.Application(middlewares=[connections.middleware()])
    app.add_routes([web.get("/", hello), web.get("/wait", wait)])
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    sockets = await listen("127.0.0.1", 0)
    await LimitedSite(runner, sockets, connections, tls=tls).start()
    site = Site(connections, sockets[0].getsockname()[:2], released)
    try:
        yield site
    finally:
        await runner.cleanup()
        for writer in site.writers:
            writer.close()
        await until(lambda: len(connections) == 0, "the end of all connections")


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server closed it without a word; a reset says the same."""
    try:
        return await asyncio.wait_for(reader.read(), 20) == b""
    except ConnectionError:
        return True


async def test_a_connection_too_many_is_closed_at_once_and_the_others_stay(caplog):
    connections = Connections("http.listen", 2)
    async with served(connections) as site:
        made = await site.silent(2)
        for _ in range(20):
            reader, _ = await site.connect()
            assert await ended(reader)
        assert len(connections) == 2
        reader, writer = made[0]
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"hello")
    said = [one for one in caplog.records if one.message == "http.connections_full"]
    assert len(said) == 1


async def test_a_place_is_free_again_when_its_connection_ends():
    connections = Connections("http.listen", 1)
    async with served(connections) as site:
        [(_, writer)] = await site.silent(1)
        writer.close()
        await until(lambda: len(connections) == 0, "a free place")
        assert await site.get() == "hello"


async def test_a_connection_without_a_request_is_closed_in_time():
    connections = Connections("http.listen", 8, patience=0.2)
    async with served(connections) as site:
        [(silent, _), (slow, writer)] = await site.silent(2)
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        assert await ended(silent)
        assert await ended(slow)


async def test_a_request_that_takes_long_is_answered():
    connections = Connections("http.listen", 8, patience=0.2)
    async with served(connections) as site:
        [(silent, _)] = await site.silent(1)
        waiting = asyncio.create_task(site.get("/wait"))
        assert await ended(silent)
        await asyncio.sleep(0.3)
        site.released.set()
        assert await waiting == "at last"


@pytest.fixture(scope="module")
def server_tls(tmp_path_factory):
    files = Files.write(tmp_path_factory.mktemp("certificates"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server.certificate, files.server.key)
    return context


async def test_a_connection_counts_before_its_tls_handshake_and_ends_without_one(server_tls):
    connections = Connections("http.listen", 1, patience=0.5)
    async with served(connections, server_tls) as site:
        [(silent, _)] = await site.silent(1)
        reader, _ = await site.connect()
        assert await ended(reader)
        assert await ended(silent)
        await until(lambda: len(connections) == 0, "a free place")
        assert await site.get(scheme="https") == "hello"


async def test_without_a_free_file_it_says_so_once_and_goes_on(monkeypatch, caplog):
    loop, taken = asyncio.get_running_loop(), []
    accept = loop.sock_accept

    async def sock_accept(listener):
        taken.append(listener)
        if len(taken) < 4:
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(listener)

    monkeypatch.setattr("bridge.web.access.connections._PAUSE", 0.0)
    monkeypatch.setattr(loop, "sock_accept", sock_accept)
    async with served(Connections("http.listen", 8)) as site:
        assert await site.get() == "hello"
    [said] = [one for one in caplog.records if one.message == "http.accept_failed"]
    assert vars(said)["listener"] == "http.listen"


async def test_a_name_is_served_at_all_of_its_addresses():
    sockets = await listen("localhost", 0)
    assert {one.family for one in sockets} <= {socket.AF_INET, socket.AF_INET6}
    for one in sockets:
        assert one.getsockname()[0] in {"127.0.0.1", "::1"}
        one.close()


async def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(OSError, match=r".") as caught:
        await listen("192.0.2.1", 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL
