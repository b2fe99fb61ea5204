"""What the MQTT sink makes of a server's answers, those too that no real server can be made to give."""

import asyncio
import logging
import socket

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from support.cloudevents import batch, make
from support.scripted_mqtt import (
    CONNECT,
    DISCONNECT,
    connack,
    goodbye,
    maximum_packet,
    maximum_qos,
    puback,
    receive_maximum,
    retain_available,
    scripted_mqtt,
)
from support.sink_contract import PATIENCE, Leftovers, cancel

from bridge.plugins import Place, Rejected, Unavailable
from sinks.mqtt import MqttSettings, sink

PLACE = Place({"vm_id": "vm-1", "observer": "web-1"}, sink="plant")


def settings(port: int, **keys) -> MqttSettings:
    given = {"type": "mqtt", "host": "127.0.0.1", "port": port, "birth_topic": None}
    return MqttSettings.model_validate(given | {"retry": {"timeout": "5s"}} | keys)


def ended(n: int = 1, **data):
    """A CloudEvent that says that a scheduled event is over."""
    cloudevent = make(n, status="Completed", **data)
    body = cloudevent.body.replace(b"scheduledevents.scheduled.v1", b"scheduledevents.completed.v1")
    return type(cloudevent).decode(body)


async def send(made: MqttSettings, cloudevents) -> list:
    async with asyncio.timeout(PATIENCE), sink.open(made, PLACE) as sending:
        return list(await sending(cloudevents))


async def refused(made: MqttSettings, cloudevents=()) -> Unavailable:
    with pytest.raises(Unavailable) as told:
        await send(made, cloudevents)
    return told.value


@pytest.mark.parametrize("code", [0x00, 0x10])
async def test_what_the_server_takes_is_delivered_whether_or_not_somebody_has_subscribed(code):
    async with scripted_mqtt(answer=lambda each: puback(each.number, code)) as server:
        assert await send(settings(server.port), batch(3)) == [None] * 3


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (0x87, Rejected, "the server does not allow it"),
        (0x90, Rejected, "the server does not take this topic"),
        (0x99, Rejected, "the payload is not what its properties say"),
        (0x80, Unavailable, "the server fails and does not say why"),
        (0x83, Unavailable, "for reasons of its own"),
        (0x91, Unavailable, "still waits for another message"),
        (0x97, Unavailable, "the server has a quota, which is used up"),
    ],
)
async def test_what_the_server_refuses_is_told_with_its_reason_and_topic(code, kind, said):
    def answer(each):
        bad = each.topic.endswith("/B")
        return puback(each.number, code if bad else 0, "see runbook 7" if bad else "")

    async with scripted_mqtt(answer=answer) as server:
        sent = [make(1, key="A"), make(2, key="B"), make(3, key="C")]
        good, bad, also = await send(settings(server.port), sent)
    assert (good, also) == (None, None)
    assert type(bad) is kind
    assert said in str(bad)
    assert str(bad).endswith(": see runbook 7 (topic azure/scheduled-events/events/B)")


@pytest.mark.parametrize(
    ("code", "said", "wait"),
    [
        (0x86, "the server refuses the username or password", 60),
        (0x87, "the server lets no client in with this username, password", 60),
        (0x85, "the server does not take this client id", 60),
        (0x01, "the server does not speak this version of MQTT", 60),
        (0x9A, "the server retains no messages; set birth_topic: null", 60),
        (0x88, "the server is not available", None),
        (0x89, "the server is busy", None),
        (0x97, "the server has a quota", None),
    ],
)
async def test_who_is_not_let_in_says_why_and_waits_longer_when_somebody_must_act(code, said, wait):
    before = Leftovers.now()
    async with scripted_mqtt(greeting=connack(code)) as server:
        told = await refused(settings(server.port))
        assert str(told).startswith(f"127.0.0.1:{server.port}: ")
    assert said in str(told)
    assert told.retry_after == wait
    await before.settled()


@pytest.mark.parametrize(
    ("code", "said"), [(4, "refuses the username or password"), (5, "lets no client in")]
)
async def test_the_old_version_has_numbers_of_its_own_and_the_same_words(code, said):
    async with scripted_mqtt(greeting=bytes([0x20, 2, 0, code]), version="3.1.1") as server:
        told = await refused(settings(server.port, version="3.1.1"))
    assert said in str(told)
    assert told.retry_after == 60


@pytest.mark.parametrize("greeting", [b"\xff" * 9, b"\x20\x00", b"\x00\x00"])
async def test_what_is_no_mqtt_server_is_unavailable(greeting):
    before = Leftovers.now()
    async with scripted_mqtt(greeting=greeting) as server:
        assert "it hung up, as a listener does that wants another tls" in str(
            await refused(settings(server.port))
        )
    await before.settled()


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever():
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


async def test_a_message_that_is_too_large_for_the_server_is_rejected_with_both_sizes():
    small, large = make(1, size=2000), make(2, size=3000)
    async with scripted_mqtt(greeting=connack(0, maximum_packet(2500))) as server:
        results = await send(settings(server.port), [large, small])
    assert results[1] is None
    assert isinstance(results[0], Rejected)
    assert "the message has 31" in str(results[0])
    assert "the server takes 2500" in str(results[0])
    assert len(server.published) == 1


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


async def test_a_server_that_takes_qos_0_only_is_told_apart_and_can_be_used():
    async with scripted_mqtt(greeting=connack(0, maximum_qos(0))) as server:
        told = await refused(settings(server.port))
        assert "takes QoS 0 only; set qos: 0" in str(told)
        assert told.retry_after == 60
        assert await send(settings(server.port, qos=0), [make()]) == [None]


@pytest.mark.parametrize("keys", [{"retain_state": True}, {"birth_topic": "b"}], ids=str)
async def test_a_server_that_retains_nothing_is_of_no_use_to_who_wants_that(keys):
    async with scripted_mqtt(greeting=connack(0, retain_available(0))) as server:
        told = await refused(settings(server.port, **keys))
        assert "retains no messages; set" in str(told)
        assert await send(settings(server.port), [make()]) == [None]


async def test_another_client_with_our_id_is_an_error_that_names_it():
    async with scripted_mqtt(answer=lambda _: goodbye(0x8E)) as server:
        told = await refused(settings(server.port), batch(3))
    assert (
        str(told) == "the server let another connection take over (client id seb-vm-1-sink-plant)"
    )
    assert told.retry_after == 60


async def test_a_server_that_shuts_down_is_no_such_error():
    async with scripted_mqtt(answer=lambda _: goodbye(0x8B)) as server:
        told = await refused(settings(server.port), batch(3))
    assert "the server is shutting down" in str(told)
    assert told.retry_after is None


async def test_a_batch_that_is_not_acknowledged_is_unavailable_and_leaves_nothing_running():
    before = Leftovers.now()
    async with scripted_mqtt(answer=lambda _: b"") as server:
        told = await refused(settings(server.port, retry={"timeout": "300ms"}), batch(3))
    assert "no acknowledgement within 0.27 s" in str(told)
    await before.settled()


async def test_what_is_acknowledged_of_a_batch_counts_and_the_connection_is_not_used_again():
    def answer(each):
        return b"" if each.topic.endswith("/B") else puback(each.number)

    async with scripted_mqtt(answer=answer) as server:
        made = settings(server.port, retry={"timeout": "500ms"})
        async with sink.open(made, PLACE) as sending:
            one, two = await sending([make(1, key="A"), make(2, key="B")])
            assert one is None
            assert isinstance(two, Unavailable)
            with pytest.raises(Unavailable, match="did not acknowledge in time"):
                await sending([make(3, key="C")])
    assert [each.topic[-1] for each in server.published] == ["A", "B"]


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


async def test_an_end_counts_only_when_the_retained_state_is_gone_too():
    topic = "azure/scheduled-events/events/A"
    async with scripted_mqtt() as server:
        assert await send(settings(server.port, retain_state=True), [ended(key="A")]) == [None]
        assert [(each.topic, each.retain, bool(each.payload)) for each in server.published] == [
            (topic, False, True),
            (topic, True, False),
        ]


@pytest.mark.parametrize(("code", "kind"), [(0x97, Unavailable), (0x87, Rejected)])
async def test_a_state_that_is_not_cleared_is_not_delivered(code, kind):
    def answer(each):
        return puback(each.number, 0 if each.payload else code)

    async with scripted_mqtt(answer=answer) as server:
        [result] = await send(settings(server.port, retain_state=True), [ended(key="A")])
    assert type(result) is kind


async def test_a_lost_clearing_repeats_both():
    async with scripted_mqtt(
        answer=lambda each: puback(each.number) if each.payload else goodbye(0x8B)
    ) as server:
        made = settings(server.port, retain_state=True)
        await refused(made, [ended(key="A")])
        server.answer = lambda each: puback(each.number)
        assert await send(made, [ended(key="A")]) == [None]
    assert [bool(each.payload) for each in server.published] == [True, False, True, False]


async def test_a_state_is_cleared_also_when_its_end_is_too_large_to_be_told():
    async with scripted_mqtt(greeting=connack(0, maximum_packet(500))) as server:
        [result] = await send(settings(server.port, retain_state=True), [ended(key="A")])
        assert isinstance(result, Rejected)
        assert [each.payload for each in server.published] == [b""]


async def test_a_birth_that_is_refused_keeps_no_news_back(caplog):
    def answer(each):
        return puback(each.number, 0x87 if each.topic == "b" else 0)

    async with scripted_mqtt(answer=answer) as server:
        with caplog.at_level(logging.WARNING):
            assert await send(settings(server.port, birth_topic="b"), [make()]) == [None]
    assert [record.message for record in caplog.records] == ["mqtt.birth_refused"]
    assert "does not allow it (topic b)" in caplog.records[0].error


async def test_a_connection_that_breaks_in_silence_is_noticed_with_the_next_batch():
    async with scripted_mqtt() as server, sink.open(settings(server.port), PLACE) as sending:
        await server.hang_up()
        with pytest.raises(Unavailable, match="the connection broke"):
            await sending([make()])


async def test_where_nothing_listens_and_where_there_is_no_such_name():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert str(await refused(settings(port))) == f"127.0.0.1:{port}: nothing listens there"
    nowhere = settings(1883, host="no-such-host.invalid")
    assert str(await refused(nowhere)) == "no-such-host.invalid:1883: its name cannot be resolved"


@pytest.mark.parametrize("keys", [{"tls": True}, {"transport": "websockets"}], ids=str)
async def test_a_handshake_that_nobody_answers_is_given_up_at_once(keys):
    before = Leftovers.now()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = settings(silent.getsockname()[1], **keys, retry={"timeout": "30s"})
        entering = asyncio.ensure_future(send(made, []))
        await asyncio.wait({entering}, timeout=0.2)
        await cancel(entering)
        assert before.threads() == set()
    await before.settled()


def test_what_we_use_of_paho_beyond_its_interface_is_there():
    """An upgrade that moves these must move `network` and `reading` too."""
    for name in (
        "_create_socket",
        "_create_socket_connection",
        "_ssl_wrap_socket",
        "_reset_sockets",
        "_packet_read",
        "_handle_publish",
    ):
        assert callable(getattr(Client, name))
    made = Client(CallbackAPIVersion.VERSION2)
    assert hasattr(made, "_thread")
    assert hasattr(made, "_last_bytes_received")
    assert made._in_packet["packet"] == b""


async def test_the_check_uses_a_client_id_of_its_own_and_publishes_nothing():
    async with scripted_mqtt() as server:
        said = await sink.check(settings(server.port, birth_topic="b"), PLACE)
        assert server.published == []
    assert b"seb-vm-1-sink-plant-check" in server.connects[0]
    assert f"was let in at 127.0.0.1:{server.port} by MQTT 5 without TLS" in said
    assert "nothing was" in said
