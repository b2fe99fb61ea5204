"""paho and its thread: sizes, sockets that are given up, packets that cannot be read."""

import asyncio
import socket

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from support.cloudevents import make
from support.mqtt_sending import send, settings
from support.scripted_mqtt import connack, maximum_packet, scripted_mqtt
from support.sink_contract import Leftovers, cancel

from bridge.plugins import Rejected
from sinks.mqtt.network import unreadable


@pytest.mark.parametrize("keys", [{}, {"mode": "binary"}, {"qos": 0}], ids=str)
async def test_a_message_may_be_exactly_as_large_as_the_server_takes(keys):
    async with scripted_mqtt() as server:
        assert await send(settings(server.port, **keys), [make()]) == [None]
        [seen] = server.published
    for room, result in ((seen.size, type(None)), (seen.size - 1, Rejected)):
        async with scripted_mqtt(greeting=connack(0, maximum_packet(room))) as server:
            assert [type(each) for each in await send(settings(server.port, **keys), [make()])] == [
                result
            ]


@pytest.mark.parametrize("keys", [{"tls": True}, {"transport": "websockets"}], ids=str)
async def test_a_handshake_without_an_answer_is_given_up_immediately(keys):
    before = Leftovers.now()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = settings(silent.getsockname()[1], **keys, retry={"timeout": "30s"})
        entering = asyncio.ensure_future(send(made, []))
        await asyncio.wait({entering}, timeout=0.2)
        await cancel(entering)
        assert before.threads() == set()
    await before.settled()


def test_what_we_use_of_paho_beyond_its_interface_is_there():
    """An upgrade that moves these must move `network` too."""
    for name in (
        "_create_socket",
        "_create_socket_connection",
        "_ssl_wrap_socket",
        "_reset_sockets",
        "_packet_read",
        "_handle_publish",
        "_handle_pubackcomp",
        "_do_on_publish",
    ):
        assert callable(getattr(Client, name))
    made = Client(CallbackAPIVersion.VERSION2)
    assert hasattr(made, "_thread")
    assert hasattr(made, "_last_bytes_received")
    assert made._in_packet["packet"] == b""


def test_a_message_that_paho_cannot_read_still_has_a_number():
    message = unreadable(0x33, b"\x00\x03a/b\x01\x02\x05broken")
    assert message is not None
    assert (message.mid, message.qos, message.retain, message.topic) == (0x0102, 1, True, "a/b")
    assert message.payload == b"\x00\x03a/b\x01\x02\x05broken"
    without = unreadable(0x30, b"\x00\x01a")
    assert without is not None
    assert without.mid == 0


@pytest.mark.parametrize("packet", [b"", b"\x00", b"\x00\x05a", b"\x00\x01a\x01"])
def test_a_message_whose_number_cannot_be_found_is_given_up(packet: bytes):
    assert unreadable(0x32, packet) is None
    assert unreadable(0x34, b"\x00\x01a\x00\x01") is None
