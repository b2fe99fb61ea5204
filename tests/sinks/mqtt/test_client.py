"""One connection to an MQTT server: its window, its silence, its end."""

import asyncio

import pytest
from support.cloudevents import batch, make
from support.mqtt_sending import PLACE, refused, send, settings
from support.scripted_mqtt import CONNECT, DISCONNECT, connack, receive_maximum, scripted_mqtt
from support.sink_contract import PATIENCE

from bridge.plugins import Unavailable
from sinks.mqtt import sink


async def test_the_sink_does_not_wait_forever_for_a_silent_server():
    async with scripted_mqtt(greeting=None) as server:
        made = settings(server.port, birth_topic="b", retry={"timeout": "250ms"})
        assert "no answer within 0.18 s" in str(await refused(made))
        assert server.packets == [CONNECT]


async def test_no_more_messages_wait_than_the_server_wants_to_have():
    async with scripted_mqtt(greeting=connack(0, receive_maximum(2)), hold=2) as server:
        assert await send(settings(server.port), batch(7)) == [None] * 7
    assert server.most_waiting == 2


async def test_twenty_wait_when_the_server_does_not_say():
    async with scripted_mqtt(hold=30) as server:
        assert await send(settings(server.port), batch(25)) == [None] * 25
    assert server.most_waiting == 20


async def test_with_qos_0_nothing_is_waited_for():
    async with scripted_mqtt(answer=lambda _: b"") as server:
        assert await send(settings(server.port, qos=0), batch(30)) == [None] * 30
    assert len(server.published) == 30


async def test_leaving_says_goodbye():
    async with scripted_mqtt() as server:
        await send(settings(server.port), [make()])
        async with asyncio.timeout(PATIENCE):
            while DISCONNECT not in server.packets:
                await asyncio.sleep(0.01)


async def test_a_connection_that_breaks_in_silence_is_noticed_with_the_next_batch():
    async with scripted_mqtt() as server, sink.open(settings(server.port), PLACE) as sending:
        await server.hang_up()
        with pytest.raises(Unavailable, match="the connection broke"):
            await sending([make()])
