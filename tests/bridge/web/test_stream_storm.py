"""A storm of transitions: many readers, some of them slow, share what they read."""

import asyncio
import re
from contextlib import suppress

import pytest
from support.cloudevents import make
from support.served_bridge import bridge, config
from support.until import until

from bridge.web.stream import Streams

STORM, TOGETHER, STREAMS = 10_000, 200, 8
_ID = re.compile(rb"^id: (\S+)\ndata: \{\"", re.MULTILINE)


class Reader:
    """Reads raw bytes, and resumes after the last CloudEvent that arrived whole."""

    def __init__(self, at, wanted):
        self.at, self.wanted = at, wanted
        self.seen: dict[bytes, None] = {}
        self.repeated = self.connections = 0
        self.head = b""

    async def connect(self, last=None):
        reader, writer = await asyncio.open_connection(self.at.host, self.at.port, limit=4096)
        resume = f"Last-Event-ID: {last}\r\n" if last else ""
        writer.write(f"GET /api/v1/stream HTTP/1.0\r\nHost: {self.at}\r\n{resume}\r\n".encode())
        self.head = await reader.readuntil(b"\r\n\r\n")
        self.connections += 1
        return reader, writer

    async def drain(self, reader, writer):
        """Read until everything is here, or the bridge ends the connection."""
        rest = b""
        with suppress(ConnectionError):
            while len(self.seen) < self.wanted and (piece := await reader.read(1 << 18)):
                whole, _, rest = (rest + piece).rpartition(b"\n\n")
                for found in _ID.findall(whole + b"\n"):
                    self.repeated += found in self.seen
                    self.seen[found] = None
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def read_all(self, connection):
        await self.drain(*connection)
        while len(self.seen) < self.wanted:
            await self.drain(*await self.connect([*self.seen][-1].decode()))


@pytest.mark.timeout(120)
async def test_a_storm_reaches_every_reader_at_the_cost_of_one(tmp_path, monkeypatch):
    streams = Streams(STREAMS, patience=2.0)
    monkeypatch.setattr("bridge.web.server._streams", lambda _: streams)
    async with bridge(config(tmp_path)) as running:
        readers = [Reader(running.served.http, STORM) for _ in range(STREAMS)]
        opened = [await reader.connect() for reader in readers]
        assert all(b" 200 " in reader.head for reader in readers)
        await until(lambda: streams.count == STREAMS)
        *fast, slow = readers
        tasks = [
            asyncio.create_task(one.read_all(place))
            for one, place in zip(fast, opened, strict=False)
        ]
        most_between = largest = 0
        for first in range(0, STORM, TOGETHER):
            before = streams.batches.reads
            # As a poll does it: one transaction, behind whatever the readers have asked for.
            await running.journal.append(
                [make(n, size=2000) for n in range(first, first + TOGETHER)], 1.0
            )
            most_between = max(most_between, streams.batches.reads - before)
            buffers = [
                request.transport.get_write_buffer_size()
                for request in streams._open.values()
                if request.transport is not None
            ]
            largest = max(largest, *buffers)
        await asyncio.gather(*tasks)
        await until(lambda: streams.count == 0)  # the slow one was dropped, the others are done
        assert most_between <= 3 * STREAMS, "a poll waits for few reads"
        assert largest < 1 << 20, "what a reader has not taken is not kept for it"
        assert streams.batches.reads < STORM, "readers at the same place share what is read"
        assert len(streams.batches._kept) <= 8
        assert [(len(one.seen), one.repeated) for one in fast] == [(STORM, 0)] * len(fast)
        await slow.read_all(opened[-1])
        assert (len(slow.seen), slow.repeated, slow.connections > 1) == (STORM, 0, True)
        assert [*slow.seen] == [*fast[0].seen]


async def test_streams_leave_32_connections_for_everything_else(tmp_path):
    async with bridge(config(tmp_path, max_connections=34)) as running:
        readers = [Reader(running.served.http, 1) for _ in range(3)]
        opened = [await reader.connect() for reader in readers]
        assert [b" 200 " in reader.head for reader in readers] == [True, True, False]
        assert b" 503 " in readers[2].head
        assert (await running.http.ask("GET", "/api/v1/events"))[0] == 200
        for _, writer in opened:
            writer.close()
