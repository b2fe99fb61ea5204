"""A small HTTP server on loopback that answers exactly the bytes that a test wants."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def http(status: int = 200, body: bytes | str | object = b"", **headers: str) -> bytes:
    """One whole answer; what is neither bytes nor text is written as JSON."""
    if not isinstance(body, bytes | str):
        body = json.dumps(body)
    raw = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(raw)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


Handler = Callable[[Request], Awaitable[bytes | None]]


@dataclass
class CannedServer:
    """Gives `answer` to every request; None closes the connection, `hang_up` does so after it.

    `parts` follow the answer one by one, each after a `pause`.
    """

    answer: bytes | None = b""
    handler: Handler | None = None
    parts: Iterable[bytes] = ()
    pause: float = 0.0
    sent: int = 0
    hang_up: bool = False
    reset: bool = False
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    now: int = 0
    at_once: int = 0
    port: int = 0
    _server: Any = None
    _tasks: set[Any] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            if self.reset:
                writer.transport.abort()
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _read(reader)
        self.requests.append(request)
        self.now += 1
        self.at_once = max(self.at_once, self.now)
        answer = await self.handler(request) if self.handler else self.answer
        self.now -= 1
        if answer is None:
            return False
        writer.write(answer)
        await writer.drain()
        for part in self.parts:
            await asyncio.sleep(self.pause)
            writer.write(part)
            await writer.drain()
            self.sent += 1
        return not self.hang_up


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)
