"""What the MQTT sink says of a server's answers, those too that no real server can be made to give."""

import socket

import pytest
from support.cloudevents import batch, make
from support.mqtt_sending import refused, send, settings
from support.scripted_mqtt import connack, goodbye, puback, scripted_mqtt
from support.sink_contract import Leftovers

from bridge.plugins import Rejected, Unavailable
from sinks.mqtt.errors import _REASONS, Acknowledgment, Greeting, message_refused, taken_over


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (0x87, Rejected, "the server does not allow it"),
        (0x90, Rejected, "the server does not accept this topic"),
        (0x99, Rejected, "the payload does not match its format"),
        (0x80, Unavailable, "the server failed without a reason"),
        (0x83, Unavailable, "for reasons of its own"),
        (0x91, Unavailable, "still waits for another message"),
        (0x97, Unavailable, "the server has a quota, and it is used up"),
    ],
)
async def test_a_refusal_of_the_server_names_reason_and_topic(code, kind, said):
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
        (0x87, "the server does not accept this username, password", 60),
        (0x85, "the server does not accept this client id", 60),
        (0x01, "the server does not support this version of MQTT", 60),
        (0x9A, "the server retains no messages; set birth_topic: null", 60),
        (0x88, "the server is not available", None),
        (0x89, "the server is busy", None),
        (0x97, "the server has a quota", None),
    ],
)
async def test_a_refused_connection_says_why_and_waits_longer_for_an_operator(code, said, wait):
    before = Leftovers.now()
    async with scripted_mqtt(greeting=connack(code)) as server:
        told = await refused(settings(server.port))
        assert str(told).startswith(f"127.0.0.1:{server.port}: ")
    assert said in str(told)
    assert told.retry_after == wait
    await before.settled()


@pytest.mark.parametrize(
    ("code", "said"),
    [(4, "refuses the username or password"), (5, "does not accept this username")],
)
async def test_the_old_version_has_numbers_of_its_own_and_the_same_words(code, said):
    async with scripted_mqtt(greeting=bytes([0x20, 2, 0, code]), version="3.1.1") as server:
        told = await refused(settings(server.port, version="3.1.1"))
    assert said in str(told)
    assert told.retry_after == 60


@pytest.mark.parametrize("greeting", [b"\xff" * 9, b"\x20\x00", b"\x00\x00"])
async def test_what_is_not_an_mqtt_server_is_unavailable(greeting):
    before = Leftovers.now()
    async with scripted_mqtt(greeting=greeting) as server:
        assert "it closed the connection; perhaps it expects other tls" in str(
            await refused(settings(server.port))
        )
    await before.settled()


async def test_another_client_with_our_id_is_an_error_that_names_it():
    async with scripted_mqtt(answer=lambda _: goodbye(0x8E)) as server:
        told = await refused(settings(server.port), batch(3))
    assert (
        str(told) == "the server let another connection take over (client id seb-vm-1-sink-plant)"
    )
    assert told.retry_after == 1


def test_two_clients_with_one_id_take_it_from_each_other_less_and_less_often():
    taken = [taken_over("mq:1883", "twin", now=float(n)).retry_after for n in range(12)]
    assert taken == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert taken_over("mq:1883", "other", now=12.0).retry_after == 1
    assert taken_over("mq:1884", "twin", now=12.0).retry_after == 1


def test_an_hour_without_a_takeover_forgets_it():
    assert taken_over("mq:1883", "rested", now=0.0).retry_after == 1
    assert taken_over("mq:1883", "rested", now=3500.0).retry_after == 2
    assert taken_over("mq:1883", "rested", now=7200.0).retry_after == 1


NO_LENGTH = b"\x40\xff\xff\xff\xff\xff"
CUT_SHORT = b"\x40\x01\x00"
NO_PACKET = b"\x01\x00"


@pytest.mark.parametrize(
    ("packet", "named"),
    [
        (NO_LENGTH, "a packet without a valid length"),
        (CUT_SHORT, "PUBACK: wrong size of packet"),
        (NO_PACKET, "an unexpected packet (RESERVED)"),
    ],
)
async def test_a_protocol_error_is_named_and_makes_the_sink_wait_longer_each_time(packet, named):
    async with scripted_mqtt(answer=lambda _: packet) as server:
        told = [await refused(settings(server.port), batch(3)) for _ in range(3)]
    assert {str(one) for one in told} == {f"the server violates the protocol: {named}"}
    assert [one.retry_after for one in told] == [1, 2, 4]


async def test_a_server_that_blames_our_packets_is_left_alone_longer_each_time():
    async with scripted_mqtt(answer=lambda _: goodbye(0x82)) as server:
        told = [await refused(settings(server.port), batch(3)) for _ in range(3)]
    assert all("says that we violate the protocol" in str(one) for one in told)
    assert [one.retry_after for one in told] == [1, 2, 4]


async def test_a_server_that_shuts_down_is_no_such_error():
    async with scripted_mqtt(answer=lambda _: goodbye(0x8B)) as server:
        told = await refused(settings(server.port), batch(3))
    assert "the server is shutting down" in str(told)
    assert told.retry_after is None


async def test_where_nothing_listens_and_where_there_is_no_such_name():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert str(await refused(settings(port))) == f"127.0.0.1:{port}: nothing listens there"
    nowhere = settings(1883, host="no-such-host.invalid")
    assert str(await refused(nowhere)) == "no-such-host.invalid:1883: its name cannot be resolved"


@pytest.mark.parametrize("code", sorted(_REASONS), ids=hex)
def test_every_reason_is_a_sentence(code):
    said = str(message_refused(code, "t", "words"))
    assert said.startswith("the server ")
    assert said.endswith(": words (topic t)")


def test_an_unknown_reason_is_retried_and_named_by_its_number():
    assert str(message_refused(0xFE, "t")) == "the server answered with code 0xfe (topic t)"


def test_what_a_server_says_is_cut_and_kept_on_one_line():
    class Code:
        value = 0x87

    class Properties:
        ReasonString = "a\nb" + "x" * 1000

    read = Acknowledgment.read(Code, Properties)
    assert read.said.startswith("a b")
    assert len(read.said) <= 200
    assert not read.ok


def test_a_greeting_without_properties_has_what_the_standard_says():
    class Flags:
        session_present = True

    assert Greeting.read(Flags, None) == Greeting(session_present=True)
