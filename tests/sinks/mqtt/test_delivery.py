"""A batch to an MQTT server that answers by a script: what counts as delivered, and what does not."""

import logging

import pytest
from support.cloudevents import batch, make
from support.mqtt_sending import PLACE, refused, send, settings
from support.scripted_mqtt import (
    connack,
    goodbye,
    maximum_packet,
    maximum_qos,
    puback,
    retain_available,
    scripted_mqtt,
)
from support.sink_contract import Leftovers

from bridge.plugins import Rejected, Unavailable
from sinks.mqtt import sink


def ended(n: int = 1, **data):
    """A CloudEvent that says that a scheduled event is over."""
    cloudevent = make(n, status="Completed", **data)
    body = cloudevent.body.replace(b"scheduledevents.scheduled.v1", b"scheduledevents.completed.v1")
    return type(cloudevent).decode(body)


@pytest.mark.parametrize("code", [0x00, 0x10, 0x01, 0x7F])
async def test_an_accepted_message_is_delivered_with_or_without_subscribers(code):
    async with scripted_mqtt(answer=lambda each: puback(each.number, code)) as server:
        assert await send(settings(server.port), batch(3)) == [None] * 3


async def test_an_unknown_failure_is_told_with_its_code():
    async with scripted_mqtt(answer=lambda each: puback(each.number, 0xEE)) as server:
        results = await send(settings(server.port), batch(2))
        assert len(server.connects) == 1
    assert [type(one) for one in results] == [Unavailable] * 2
    assert "the server answered with code 0xee" in str(results[0])


async def test_a_message_that_is_too_large_for_the_server_is_rejected_with_both_sizes():
    small, large = make(1, size=2000), make(2, size=3000)
    async with scripted_mqtt(greeting=connack(0, maximum_packet(2500))) as server:
        results = await send(settings(server.port), [large, small])
    assert results[1] is None
    assert isinstance(results[0], Rejected)
    assert "the message has 31" in str(results[0])
    assert "the server accepts 2500" in str(results[0])
    assert len(server.published) == 1


async def test_a_server_that_takes_qos_0_only_is_recognized_and_can_be_used():
    async with scripted_mqtt(greeting=connack(0, maximum_qos(0))) as server:
        told = await refused(settings(server.port))
        assert "supports QoS 0 only; set qos: 0" in str(told)
        assert told.retry_after == 60
        assert await send(settings(server.port, qos=0), [make()]) == [None]


@pytest.mark.parametrize("keys", [{"retain_state": True}, {"birth_topic": "b"}], ids=str)
async def test_a_server_that_retains_nothing_is_of_no_use_to_who_wants_that(keys):
    async with scripted_mqtt(greeting=connack(0, retain_available(0))) as server:
        told = await refused(settings(server.port, **keys))
        assert "retains no messages; set" in str(told)
        assert await send(settings(server.port), [make()]) == [None]


async def test_a_batch_that_is_not_acknowledged_is_unavailable_and_leaves_nothing_running():
    before = Leftovers.now()
    async with scripted_mqtt(answer=lambda _: b"") as server:
        told = await refused(settings(server.port, retry={"timeout": "300ms"}), batch(3))
    assert "no acknowledgment within 0.27 s" in str(told)
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


async def test_a_state_is_cleared_even_if_its_end_is_too_large_to_publish():
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
