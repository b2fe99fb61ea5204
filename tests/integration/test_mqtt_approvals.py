"""The MQTT approval source by itself, against a real broker."""

import asyncio
import contextlib
import re
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.mosquitto import Mosquitto
from support.mosquitto_clients import Address, mosquitto_pub
from support.scripted_mqtt import connack, scripted_mqtt
from support.source_reader import PATIENCE, SourceReader, bodies
from support.tcp_proxy import TcpProxy, tcp_proxied
from support.until import until

from bridge.plugins import Listening, Place, Unavailable
from sinks.mqtt import binding, source
from sinks.mqtt.connection import make_connector
from sinks.mqtt.network import Terms
from sinks.mqtt.source import MqttApprovals, listen

VERSIONS = pytest.mark.parametrize("version", ["5", "3.1.1"])

Make = Callable[..., Mosquitto]


def new_topic() -> str:
    return f"approvals/{uuid.uuid4()}"


def approvals_from(broker: Address, topic: str, **more: Any) -> MqttApprovals:
    return MqttApprovals.model_validate(
        {"type": "mqtt", "host": broker.host, "port": broker.port, "topic": topic}
        | {"trust": "transport"}
        | more
    )


async def nothing_is_left(intake: SourceReader, broker: Address, topic: str) -> None:
    """What was not acknowledged would come again, and first."""
    await mosquitto_pub(broker, topic, b"the last")
    assert await intake.session(1) == [b"the last"]


def readers(before: set[threading.Thread]) -> list[str]:
    """The threads that read from servers, and were not there before."""
    new = set(threading.enumerate()) - before
    return [thread.name for thread in new if "paho" in thread.name]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PROBE", 0.1)


@pytest.fixture
async def proxy(mosquitto: Address):
    async with tcp_proxied(mosquitto.host, mosquitto.port) as proxy:
        yield proxy


async def flood(broker: Address, topic: str, count: int, **more: Any) -> None:
    """Many messages of one line each, by one mosquitto_pub."""
    lines = b"".join(b"%d\n" % number for number in range(count))
    await mosquitto_pub(broker, topic, lines, "-l", **more)


@VERSIONS
async def test_what_was_acknowledged_does_not_come_again_and_the_rest_does(mosquitto, version: str):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic, version=version))
    async with intake.open() as deliveries:
        await flood(mosquitto, topic, 3)
        await intake.take(deliveries, 1)
        await anext(deliveries)
    await mosquitto_pub(mosquitto, topic, b"while it was away", version="mqttv311")
    async with intake.open() as deliveries:
        taken = await intake.take(deliveries, 3)
        assert bodies(taken) == [b"1", b"2", b"while it was away"]
    await nothing_is_left(intake, mosquitto, topic)
    assert {(each.identity, each.position, each.checkpoint) for each in taken} == {
        (None, None, None)
    }


@VERSIONS
async def test_much_that_waited_does_not_keep_the_answer_to_the_subscription_back(
    mosquitto, version: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(source, "PATIENCE", 3.0)
    topic, count = new_topic(), 5 * source.WINDOW
    intake = SourceReader(approvals_from(mosquitto, topic, version=version))
    assert await intake.session(0) == []
    await flood(mosquitto, topic, count)
    assert await intake.session(count) == [b"%d" % number for number in range(count)]


async def test_what_was_published_while_the_bridge_was_away_is_as_old_as_the_loss(
    mosquitto, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(binding, "RESUMED", 1.0)
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic))
    before = datetime.now(UTC)
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, topic, b"live")
        (live,) = await intake.take(deliveries, 1)
    lost = datetime.now(UTC)
    await mosquitto_pub(mosquitto, topic, b"while it was away")
    async with intake.open() as deliveries:
        (waited,) = await intake.take(deliveries, 1)
        await asyncio.sleep(1.1)
        await mosquitto_pub(mosquitto, topic, b"live again")
        (again,) = await intake.take(deliveries, 1)
    assert (live.recorded, again.recorded) == (None, None)
    assert waited.recorded is not None
    assert before <= waited.recorded <= lost


async def test_after_a_restart_the_journal_says_since_when_the_bridge_was_away(mosquitto):
    topic, noted = new_topic(), datetime.now(UTC) - timedelta(minutes=5)
    intake = SourceReader(approvals_from(mosquitto, topic))
    assert await intake.session(0) == []
    await mosquitto_pub(mosquitto, topic, b"1")
    for connected in (noted, None):
        source.LAST_HEARD.pop(intake.name)
        intake.connected = connected
        async with intake.open() as deliveries:
            delivery = await anext(deliveries)
        assert delivery.recorded == (connected or datetime.fromtimestamp(0, UTC))


async def test_a_retained_message_that_is_cleared_is_a_tombstone(mosquitto):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic))
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, topic, b"", "-r")
        (cleared,) = await intake.take(deliveries, 1)
    assert (cleared.body, cleared.unread) == (b"", "tombstone")


async def test_properties_come_as_headers(mosquitto):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic))
    async with intake.open() as deliveries:
        said = [("content-type", "application/json"), ("user-property", "specversion", "1.0")]
        said += [("user-property", "id", "7"), ("user-property", "webhook-id", "m")]
        await mosquitto_pub(mosquitto, topic, b"{}", properties=said)
        await mosquitto_pub(mosquitto, topic, b"", properties=[("correlation-data", "ABC-1")])
        await mosquitto_pub(mosquitto, topic, b"")
        first, second, third = await intake.take(deliveries, 3)
    assert first.headers == [
        ("content-type", b"application/json"),
        ("specversion", b"1.0"),
        ("id", b"7"),
        ("webhook-id", b"m"),
    ]
    assert second.body == b'{"eventId": "ABC-1"}'
    assert third.body == b""


@VERSIONS
async def test_what_is_retained_is_left_unread_and_acknowledged(mosquitto, version: str):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic, version=version))
    await mosquitto_pub(mosquitto, topic, b"stale", "-r")
    async with intake.open() as deliveries:
        (stale,) = await intake.take(deliveries, 1)
        await mosquitto_pub(mosquitto, topic, b"fresh", "-r")
        (fresh,) = await intake.take(deliveries, 1)
    assert (stale.body, stale.unread) == (b"stale", "retained")
    assert (fresh.body, fresh.unread) == (b"fresh", None)
    await mosquitto_pub(mosquitto, topic, b"", "-r")


async def test_a_topic_that_was_given_up_is_no_longer_read(mosquitto):
    old, new = new_topic(), new_topic()
    intake = SourceReader(approvals_from(mosquitto, old))
    assert await intake.session(0) == []
    intake.settings = approvals_from(mosquitto, new)
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, old, b"by the old way")
        await mosquitto_pub(mosquitto, new, b"by the new way")
        taken = await intake.take(deliveries, 2)
    assert {each.body: each.unread for each in taken} == {
        b"by the old way": "other-topic",
        b"by the new way": None,
    }


async def test_a_topic_may_contain_wildcards_and_names_of_the_vm(mosquitto):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, f"{topic}/+/{{vm_name}}/#"))
    async with intake.open() as deliveries:
        for end in ("a/web-1", "a/web-2", "web-1", "a/web-1/b/c"):
            await mosquitto_pub(mosquitto, f"{topic}/{end}", end.encode())
        assert bodies(await intake.take(deliveries, 2)) == [b"a/web-1", b"a/web-1/b/c"]


POISON = {
    "garbage": (b"\xff\xfe\x00", []),
    "large": (b"x" * 200_000, []),
    "a property that paho cannot read": (b"{}", [("user-property", "name", "\ufeff")]),
    "many properties": (b"{}", [("user-property", "specversion", "x" * 500)] * 100),
}


@pytest.mark.parametrize("kind", POISON)
async def test_a_poison_message_comes_once_and_delays_no_other(mosquitto, kind: str):
    payload, properties = POISON[kind]
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic))
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, topic, payload, properties=properties)
        await mosquitto_pub(mosquitto, topic, b"after")
        poison, after = await intake.take(deliveries, 2)
        assert poison.unread is None
        assert payload in poison.body
        assert after.body == b"after"
    await nothing_is_left(intake, mosquitto, topic)


async def test_a_message_beyond_all_measure_stays_at_the_server(mosquitto):
    topic = new_topic()
    intake = SourceReader(approvals_from(mosquitto, topic))
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, topic, b"x" * 2 * source.LARGEST)
        await mosquitto_pub(mosquitto, topic, b"after")
        assert bodies(await intake.take(deliveries, 1)) == [b"after"]
    await nothing_is_left(intake, mosquitto, topic)


async def test_of_a_message_beyond_all_measure_the_old_version_keeps_the_beginning(mosquitto):
    topic, body = new_topic(), b"x" * 4 * source.LARGEST
    intake = SourceReader(approvals_from(mosquitto, topic, version="3.1.1"))
    async with intake.open() as deliveries:
        await mosquitto_pub(mosquitto, topic, body)
        await mosquitto_pub(mosquitto, topic, b"after")
        large, after = bodies(await intake.take(deliveries, 2))
        assert source.LARGEST - 100 < len(large) < source.LARGEST
        assert after == b"after"
    await nothing_is_left(intake, mosquitto, topic)


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1])
async def test_a_flood_is_kept_outside_and_nothing_of_it_is_lost(
    mosquitto, version: str, qos: int, monkeypatch: pytest.MonkeyPatch
):
    topic = new_topic()
    most = [0]
    arrive = source.Receiver._arrive

    def counting(self: source.Receiver, message: Any) -> None:
        arrive(self, message)
        most[0] = max(most[0], len(self.arrived))

    monkeypatch.setattr(source.Receiver, "_arrive", counting)
    intake = SourceReader(approvals_from(mosquitto, topic, version=version))
    async with intake.open() as deliveries:
        await flood(mosquitto, topic, 500, qos=qos)
        await until(lambda: most[0])
        taken = await intake.take(deliveries, 500)
    assert bodies(taken) == [b"%d" % number for number in range(500)]
    assert most[0] <= source.WINDOW


async def test_in_silence_it_reports_that_the_server_is_there(mosquitto, often: None):
    intake = SourceReader(approvals_from(mosquitto, new_topic()))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: len(intake.heard) > 3)
        assert set(intake.heard) == {None}
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


@pytest.mark.parametrize(("how", "version"), [("down", "5"), ("down", "3.1.1"), ("stall", "5")])
async def test_a_server_that_is_gone_is_noticed_in_silence(
    mosquitto, proxy: TcpProxy, how: str, version: str, often: None
):
    topic = new_topic()
    intake = SourceReader(approvals_from(proxy, topic, version=version, keep_alive="1s"))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        await proxy.down() if how == "down" else proxy.stall()
        with pytest.raises(Unavailable, match="broke" if how == "down" else "silent for longer"):
            await coming
    proxy.release()
    if how == "down":
        with pytest.raises(Unavailable, match="nothing listens there"):
            await intake.session(1)
        await proxy.up()
    await mosquitto_pub(mosquitto, topic, b"after")
    assert await intake.session(1) == [b"after"]


async def test_what_had_come_before_the_end_is_still_taken(mosquitto, proxy: TcpProxy):
    topic = new_topic()
    intake = SourceReader(approvals_from(proxy, topic))
    before = set(threading.enumerate())
    async with intake.open() as deliveries:
        await flood(mosquitto, topic, 3, qos=0)
        await intake.take(deliveries, 1)
        await proxy.down()
        await until(lambda: not readers(before))
        await asyncio.sleep(0)
        assert bodies(await intake.take(deliveries, 2)) == [b"1", b"2"]
        with pytest.raises(Unavailable):
            await intake.take(deliveries, 1)


@VERSIONS
async def test_a_broker_that_was_killed_goes_on_with_the_session(
    make_mosquitto: Make, version: str
):
    broker = make_mosquitto(persistent=True)
    topic = new_topic()
    intake = SourceReader(approvals_from(broker, topic, version=version))
    async with intake.open() as deliveries:
        await mosquitto_pub(broker, topic, b"unacknowledged")
        await anext(deliveries)
        broker.save()
        broker.kill()
        with pytest.raises(Unavailable):
            await intake.take(deliveries, 1)
    broker.start()
    await mosquitto_pub(broker, topic, b"later")
    assert await intake.session(2) == [b"unacknowledged", b"later"]


@pytest.mark.parametrize(("theirs", "answers"), [(60, True), (None, False)])
async def test_a_server_may_want_to_be_silent_for_longer_than_we_do(theirs: int | None, answers):
    properties = b"" if theirs is None else b"\x13" + theirs.to_bytes(2)
    async with scripted_mqtt(greeting=connack(properties=properties)) as server:
        settings = approvals_from(TcpProxy(("", 0), port=server.port), "a", keep_alive="20s")
        receiver = source.Receiver(make_connector(settings, "me", PATIENCE), Terms())
        try:
            await receiver.connect()
            receiver._network._last_bytes_received -= 30
            assert receiver.answers() is answers
        finally:
            await receiver.close()


@contextlib.asynccontextmanager
async def strict_server(
    suback: bytes, asked: list[bytes] | None = None, said: list[bytes] | None = None
) -> AsyncGenerator[TcpProxy]:
    """Lets everybody in, and answers each subscription with *suback*.

    *asked* gets the CONNECTs, and *said* what comes after the subscription, to the end.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        with contextlib.suppress(OSError, EOFError):
            for answer in (b"\x20\x03\x00\x00\x00", suback):
                head = await reader.readexactly(2)
                packet = await reader.readexactly(head[1])
                if head[0] == 0x10 and asked is not None:
                    asked.append(packet)
                writer.write(answer.replace(b"MID", packet[:2]))
            rest = await reader.read()
            if said is not None:
                said.append(rest)
        writer.transport.abort()

    serving: list[Any] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield TcpProxy(("", 0), port=server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await asyncio.gather(*serving)


async def test_a_twin_that_takes_over_is_reported_and_left_alone_for_longer_each_time():
    taken_over = b"\xe0\x02\x8e\x00"
    async with strict_server(b"\x90\x04MID\x00\x01" + taken_over) as server:
        intake = SourceReader(approvals_from(server, "a/b"))
        for seconds in (1, 2, 4):
            with pytest.raises(
                Unavailable, match=f"another .*id seb-vm-1-approvals-{intake.name}"
            ) as e:
                await intake.session(1)
            assert e.value.retry_after == seconds


async def test_a_twin_is_noticed_also_where_the_server_just_hangs_up(mosquitto):
    intake = SourceReader(approvals_from(mosquitto, new_topic()))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        async with intake.open():
            with pytest.raises(Unavailable, match="does another client use client id") as e:
                await coming
    assert e.value.retry_after == 1


async def test_a_refused_login_is_explained(make_mosquitto: Make):
    broker = make_mosquitto(users={"alice": "right"})
    settings = approvals_from(broker, new_topic(), username="alice", password="wrong")
    with pytest.raises(
        Unavailable, match=r"does not accept this username|refuses the username"
    ) as refused:
        await SourceReader(settings).session(0)
    assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (0x87, "topic a/b: the server does not allow it"),
        (0x8F, "topic a/b: the server does not accept this topic filter"),
        (0x97, "topic a/b: the server has a quota"),
        (0xA2, "topic a/b: the server does not support wildcards"),
        (0x00, "topic a/b: the server does not grant QoS 1"),
    ],
)
async def test_a_refused_subscription_is_explained_in_one_sentence(code: int, why: str):
    async with strict_server(b"\x90\x04MID\x00" + bytes([code])) as server:
        with pytest.raises(Unavailable, match=why):
            await SourceReader(approvals_from(server, "a/b")).session(0)


async def test_a_server_that_does_not_answer_our_subscription_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(source, "PATIENCE", 0.3)
    async with strict_server(b"") as server:
        with pytest.raises(Unavailable, match="no answer to our subscription"):
            await SourceReader(approvals_from(server, "a/b")).session(0)


@pytest.mark.parametrize("how", ["up", "down", "stall"])
async def test_leaving_is_quick_and_leaves_nothing_behind(mosquitto, proxy: TcpProxy, how: str):
    topic = new_topic()
    intake = SourceReader(approvals_from(proxy, topic))
    before = set(threading.enumerate())
    async with intake.open():
        if how != "up":
            await proxy.down() if how == "down" else proxy.stall()
        began = time.monotonic()
    assert time.monotonic() - began < 5
    await until(lambda: not readers(before))
    proxy.release()


async def test_it_says_goodbye_also_in_the_middle_of_a_flood(make_mosquitto: Make):
    broker = make_mosquitto()
    intake = SourceReader(approvals_from(broker, "a/b"))
    async with intake.open() as deliveries:
        await flood(broker, "a/b", 100, qos=0)
        await anext(deliveries)
    client = f"Client seb-vm-1-approvals-{intake.name}"
    await until(lambda: re.search(rf"{client} (disconnected|closed)", broker.tail()))
    assert f"{client} disconnected." in broker.tail()


@pytest.mark.parametrize("names", [{}, {"vm_name": "web-1"}])
async def test_until_the_vms_id_is_known_it_waits_unless_it_has_a_client_id(mosquitto, names):
    asked, topic = Listening("intake", {}, 0.0, lambda _: None), new_topic()
    with pytest.raises(Unavailable, match=r"id is not known yet, .*; set client_id"):
        async with listen(approvals_from(mosquitto, topic), Place(names), asked):
            pass
    async with listen(approvals_from(mosquitto, topic, client_id=topic), Place(names), asked):
        pass


async def test_what_is_acknowledged_is_told_also_when_the_subscription_is_not_answered_yet():
    waited = b"\x32\x09\x00\x03a/b\x00\x07\x00x"
    said: list[bytes] = []
    async with strict_server(waited, said=said) as server:
        assert await SourceReader(approvals_from(server, "a/b")).session(1) == [b"x"]
        await until(lambda: said)
    puback, goodbye = b"\x40\x02\x00\x07", b"\xe0"
    assert said[0].startswith(puback + goodbye)


async def test_the_session_is_asked_for_as_the_configuration_says():
    asked: list[bytes] = []
    async with strict_server(b"\x90\x04MID\x00\x01", asked) as server:
        await SourceReader(
            approvals_from(server, "a/b", session_expiry="1h", keep_alive="7s")
        ).session(0)
    (connect,) = asked
    clean_start, keep_alive = connect[7] & 2, int.from_bytes(connect[8:10])
    assert (clean_start, keep_alive) == (0, 7)
    properties = connect[11 : 11 + connect[10]]
    assert b"\x11" + (3600).to_bytes(4) in properties
    assert b"\x21" + source.WINDOW.to_bytes(2) in properties
    assert b"\x27" + source.LARGEST.to_bytes(4) in properties
