"""A forward proxy on loopback: tunnels by CONNECT, passes plain requests on, remembers both."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class ForwardProxy:
    """With `refusal`, such as 407, every request is refused."""

    url: str = ""
    refusal: int | None = None
    heads: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            if self.refusal is not None:
                writer.write(f"HTTP/1.1 {self.refusal} No\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
            else:
                await self._through(head, reader, writer)
        writer.transport.abort()

    async def _through(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, where = head.decode().split(" ")[:2]
        parts = urlsplit(f"//{where}" if method == "CONNECT" else where)
        there_reader, there = await asyncio.open_connection(parts.hostname, parts.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            there.write(head)
        passing = [_pass(reader, there), _pass(there_reader, writer)]
        tasks = [asyncio.ensure_future(each) for each in passing]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            there.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


@contextlib.asynccontextmanager
async def forward_proxy(refusal: int | None = None) -> AsyncIterator[ForwardProxy]:
    proxy = ForwardProxy(refusal=refusal)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
