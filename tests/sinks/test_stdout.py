import asyncio
import fcntl
import json
import os
import subprocess
import sys
import termios
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cloudevents import LARGEST, batch, make
from support.sink_contract import Peer, SinkContract, arrived, cancel, eventually

from bridge.plugins import Place, Unavailable
from sinks.stdout import StdoutSettings, sink

TESTS = str(Path(__file__).parents[1])
PROGRAM = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from bridge.plugins import Place, Unavailable
from sinks.stdout import StdoutSettings, sink
from support.cloudevents import batch

async def main():
    try:
        async with asyncio.timeout(float(sys.argv[3])), sink.open(StdoutSettings(), Place()) as send:
            results = await send(batch(int(sys.argv[2])))
    except (Unavailable, TimeoutError) as error:
        results = [error]
    print(*{str(result) or type(result).__name__ for result in results}, file=sys.stderr)

asyncio.run(main())
"""


class Reader(Peer):
    """A named pipe for stdout, so that one reader can go away and another can come."""

    settings = StdoutSettings()

    def __init__(self, path):
        self.path = path
        self.got = b""
        self.end = -1
        os.mkfifo(path)

    async def up(self):
        self.end = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        await self.release()

    async def down(self):
        await self.stall()
        os.close(self.end)
        self.end = -1

    async def stall(self):
        asyncio.get_running_loop().remove_reader(self.end)

    async def release(self):
        asyncio.get_running_loop().add_reader(self.end, self.read)

    def read(self):
        try:
            self.got += os.read(self.end, 10_000)
        except BlockingIOError:
            return

    async def received(self):
        return [json.loads(line) for line in self.got.split(b"\n")[:-1]]


@pytest.fixture
async def peer(tmp_path, monkeypatch):
    reader = Reader(tmp_path / "pipe")
    await reader.up()
    with reader.path.open("w", encoding="ascii") as stdout:
        monkeypatch.setattr(sys, "__stdout__", stdout)
        yield reader
        await eventually(_nobody_writes)
    if reader.end >= 0:
        await reader.down()


async def _nobody_writes():
    return not any(thread.name == "sink-lane" for thread in threading.enumerate())


class TestStdout(SinkContract):
    plugin = sink
    cannot_reject = "a pipe takes anything"
    keeps_a_thread = "a write that its reader blocks cannot be taken back"

    @pytest.fixture
    async def peer(self, peer):
        return peer


@contextmanager
def stdout_at(monkeypatch, descriptor):
    with os.fdopen(descriptor, "w") as stdout:
        monkeypatch.setattr(sys, "__stdout__", stdout)
        yield


async def send(cloudevents):
    async with sink.open(StdoutSettings(), Place()) as deliver:
        return await deliver(cloudevents)


async def test_each_line_is_the_body_as_it_is(peer):
    sent = batch(3)
    assert await send(sent) == [None] * 3
    await arrived(peer, sent)
    assert peer.got == b"".join(cloudevent.body + b"\n" for cloudevent in sent)


async def test_a_line_cut_short_by_a_cancellation_is_finished_before_the_next_begins(peer):
    await peer.stall()
    stuck = asyncio.ensure_future(send([make(1, size=LARGEST), make(2, size=LARGEST)]))
    await eventually(lambda: _full(peer))
    await cancel(stuck)
    later = asyncio.ensure_future(send([make(3)]))
    await peer.release()
    assert await later == [None]
    await arrived(peer, [make(3)])
    assert [envelope["id"] for envelope in await peer.received()] == [make(1).id, make(3).id]


async def _full(peer):
    """Whether no more than a page is free in the pipe: the writer is about to wait."""
    waiting = int.from_bytes(fcntl.ioctl(peer.end, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    return waiting > LARGEST - 8192


async def test_a_line_cut_short_by_a_full_pipe_is_finished_before_the_next_begins(peer):
    """Some programs make a shared stdout non-blocking; then a write takes what fits."""
    assert sys.__stdout__ is not None
    os.set_blocking(sys.__stdout__.fileno(), False)
    await peer.stall()
    big = batch(4, size=LARGEST)
    results = await send(big)
    assert results[0] is None or isinstance(results[0], Unavailable)
    assert "too slow" in str(results[-1])
    await peer.release()
    await eventually(lambda: _empty(peer))
    assert await send([make(9)]) == [None]
    await arrived(peer, [make(9)])
    assert len(await peer.received()) >= 2


async def _empty(peer):
    before = len(peer.got)
    await asyncio.sleep(0.02)
    return before and len(peer.got) == before


async def test_a_broken_pipe_says_that_its_reader_has_closed_it(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with stdout_at(monkeypatch, writing):
        results = await send(batch(2))
    assert [str(result) for result in results] == ["stdout: its reader has closed it"] * 2


async def test_a_closed_stdout_is_unavailable(monkeypatch, tmp_path):
    with (tmp_path / "was open").open("w", encoding="ascii") as once:
        pass
    for closed in (None, once):
        monkeypatch.setattr(sys, "__stdout__", closed)
        with pytest.raises(Unavailable, match="stdout is closed"):
            await send(batch(1))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a Linux device")
async def test_a_full_disk_behind_stdout_is_unavailable(monkeypatch):
    with stdout_at(monkeypatch, os.open("/dev/full", os.O_WRONLY)):
        [result] = await send(batch(1))
    assert str(result) == "stdout: No space left on device"


async def test_what_went_out_before_the_reader_left_is_delivered(monkeypatch):
    reading, writing = os.pipe()
    sent = [make(1), *batch(40, first=2, size=LARGEST)]
    with stdout_at(monkeypatch, writing):
        sending = asyncio.ensure_future(send(sent))
        await asyncio.to_thread(os.read, reading, len(sent[0].body) + 1)
        os.close(reading)
        results = await sending
    assert results[0] is None
    assert isinstance(results[-1], Unavailable)


def start(*argv, stdout):
    command = [sys.executable, "-W", "error", "-c", PROGRAM, TESTS, *map(str, argv)]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_a_process_whose_reader_is_gone_ends_in_peace():
    reading, writing = os.pipe()
    os.close(reading)
    process = start(3, 10, stdout=writing)
    os.close(writing)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "stdout: its reader has closed it\n")


def test_a_process_whose_reader_does_not_read_can_leave():
    reading, writing = os.pipe()
    process = start(1000, 0.5, stdout=writing)
    os.close(writing)
    _, errors = process.communicate(timeout=20)
    os.close(reading)
    assert (process.returncode, errors) == (0, "TimeoutError\n")


def test_a_process_started_without_stdout_writes_into_no_other_file(tmp_path):
    """Its first file gets descriptor 1, which is then nobody's stdout."""
    shell = f'exec "$0" -c "$1" "$2" 1 10 >&- 2>{tmp_path / "errors"}'
    other = f"other = open({str(tmp_path / 'journal')!r}, 'w')\nassert other.fileno() == 1\n"
    argv = ["/bin/sh", "-c", shell, sys.executable, other + PROGRAM, TESTS]
    subprocess.run(argv, check=True, timeout=20)
    assert (tmp_path / "journal").read_bytes() == b""
    assert (tmp_path / "errors").read_text() == "stdout is closed\n"
