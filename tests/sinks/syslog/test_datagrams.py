"""Messages over UDP: what can be known of them, and how they are paced."""

import asyncio
import contextlib
import socket

import pytest
from support.cloudevents import batch, make
from support.results import proved
from support.syslog_sending import PLACE, configured, deliver

from bridge.plugins import Rejected, Unavailable
from sinks.syslog import sink


async def test_over_udp_a_closed_port_is_unavailable_if_the_machine_reports_it():
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"udp://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unavailable, match="nothing listens there"):
        await deliver(address, batch(2))


async def test_over_udp_a_message_is_a_datagram_and_a_larger_one_is_rejected():
    with socket.socket(type=socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        address = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        results = await deliver(address, [make(1), make(2, size=4000), make(3)])
        assert [type(result) for result in results] == [type(None), Rejected, type(None)]
        for n in (1, 3):
            assert receiver.recv(65536).endswith(b" - " + make(n).body)
        said = await proved(sink, configured(address), PLACE)
        assert said == "127.0.0.1 is 127.0.0.1; UDP does not confirm anything"
        with pytest.raises(BlockingIOError):
            receiver.recv(65536)


async def test_over_udp_a_batch_is_paced_so_that_a_small_buffer_holds_it():
    """The receiver reads when the sender pauses, and its buffer holds far fewer than 500."""
    loop, got = asyncio.get_running_loop(), []

    def read() -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                got.append(receiver.recv(65536))

    with socket.socket(type=socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        loop.add_reader(receiver, read)
        try:
            address = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
            assert await deliver(address, batch(500)) == [None] * 500
        finally:
            loop.remove_reader(receiver)
    assert len(set(got)) == 500
