"""The MQTT sink against a real Mosquitto: what subscribers see, and who is let in."""

import asyncio
import contextlib
import json
import shutil
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest
from support.certificates import issue
from support.cloudevents import batch, make
from support.mosquitto import Mosquitto, must_be_ours
from support.mosquitto_clients import mosquitto_sub
from support.mqtt_proxy import mqtt_proxied
from support.results import proved
from support.sink_contract import PATIENCE
from support.until import until

from bridge.plugins import CloudEvent, Place, Rejected, Unavailable
from sinks.mqtt import MqttSettings, sink

ACL = """
topic readwrite #
topic deny +/shut/#
user ann
topic readwrite #
user bridge-client
topic readwrite #
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory, certificates):
    must_be_ours()
    folder = tmp_path_factory.mktemp("mosquitto")
    options = {"acl": ACL, "certificates": certificates, "websockets": True}
    with Mosquitto(folder, **options) as broker:
        yield broker


@pytest.fixture
def mine() -> str:
    """The first level of this test's topics, and its VM."""
    return uuid4().hex


def settings(port: int, mine: str, **keys) -> MqttSettings:
    given = {"type": "mqtt", "host": "127.0.0.1", "port": port, "topic": f"{mine}/{{subject}}"}
    given |= {"birth_topic": None, "retry": {"timeout": "5s"}}
    return MqttSettings.model_validate(given | keys)


def place(mine: str) -> Place:
    return Place({"vm_id": mine, "observer": "web-1"}, sink="plant")


async def send(made: MqttSettings, mine: str, cloudevents) -> list:
    async with asyncio.timeout(PATIENCE), sink.open(made, place(mine)) as sending:
        return list(await sending(cloudevents))


async def why(made: MqttSettings, mine: str) -> str:
    with pytest.raises(Unavailable) as told:
        await send(made, mine, [make()])
    return str(told.value)


def news(kind: str, n: int = 1) -> CloudEvent:
    made = make(n, key="A")
    envelope = {**made.envelope, "type": f"azure.scheduledevents.{kind}.v1"}
    return CloudEvent.decode(json.dumps(envelope).encode())


# --- Messages -----------------------------------------------------------------------------------


async def test_another_client_reads_a_structured_message(broker, mine):
    keys = {"expiry": True, "response_topic": "approvals"}
    soon = make(1, key="A", notBefore="2100-01-01T00:00:00Z")
    async with mosquitto_sub(broker, f"{mine}/#") as subscriber:
        assert await send(settings(broker.port, mine, **keys), mine, [soon]) == [None]
        [message] = await subscriber.until(len, "the message")
    assert message["topic"] == f"{mine}/A"
    assert message["payload"].encode() == soon.body
    told = message["properties"]
    assert told["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert told["payload-format-indicator"] == 1
    assert told["response-topic"] == "approvals"
    assert told["message-expiry-interval"] > 10**9


async def test_another_client_reads_a_binary_message(broker, mine):
    cloudevent = make(1, key="A")
    async with mosquitto_sub(broker, f"{mine}/#") as subscriber:
        await send(settings(broker.port, mine, mode="binary"), mine, [cloudevent])
        [message] = await subscriber.until(len, "the message")
    assert json.loads(message["payload"]) == cloudevent.data
    assert message["properties"]["content-type"] == "application/json"
    expected = {name: str(value) for name, value in cloudevent.attributes.items()}
    del expected["datacontenttype"]
    assert message["properties"]["user-properties"] == expected


async def test_a_forbidden_topic_is_rejected_by_name(broker, mine):
    made = settings(broker.port, mine, topic="x/shut/{subject}")
    [result] = await send(made, mine, [make(1, key="A")])
    assert isinstance(result, Rejected)
    assert str(result) == "the server does not allow it (topic x/shut/A)"


async def test_the_old_version_is_not_told_that_a_topic_is_forbidden(broker, mine):
    made = settings(broker.port, mine, topic="x/shut/{subject}", version="3.1.1")
    assert await send(made, mine, [make()]) == [None]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_late_subscriber_sees_what_is_pending_and_no_more(broker, mine, version):
    made = settings(broker.port, mine, retain_state=True, version=version)

    async def late() -> list:
        """What a new subscriber gets before a mark that is published after it came."""
        async with mosquitto_sub(broker, f"{mine}/#") as subscriber:
            await send(settings(broker.port, mine, topic=f"{mine}/mark"), mine, [make()])
            seen = await subscriber.until(
                lambda got: got[-1:] and got[-1]["topic"].endswith("/mark"), "the mark"
            )
        return [json.loads(each["payload"])["type"].split(".")[2] for each in seen[:-1]]

    for kind, left in (
        ("scheduled", ["scheduled"]),
        ("updated", ["updated"]),
        ("approval.granted", ["updated"]),
        ("started", ["started"]),
        ("completed", []),
    ):
        assert await send(made, mine, [news(kind)]) == [None]
        assert await late() == left


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_it_stands_on_its_topic_whether_the_bridge_is_there(broker, mine, version):
    async with (
        mqtt_proxied(broker.host, broker.port) as proxy,
        mosquitto_sub(broker, f"{mine}-bridges/#") as subscriber,
    ):
        made = settings(
            proxy.port, mine, birth_topic=f"{mine}-bridges/{{observer}}", version=version
        )

        async def said(count: int) -> dict:
            return json.loads(
                (await subscriber.until(lambda got: len(got) >= count, "news"))[-1]["payload"]
            )

        async with sink.open(made, place(mine)):
            online = await said(1)
        stopped = await said(2)
        with contextlib.suppress(Unavailable):
            async with sink.open(made, place(mine)):
                await said(3)
                await proxy.hang_up()
                lost = await said(4)
    assert (online["status"], online["client"]) == ("online", f"seb-{mine}-sink-plant")
    assert (stopped["status"], stopped["reason"]) == ("offline", "stopped")
    assert (lost["status"], lost["reason"], lost["observer"]) == ("offline", "lost", "web-1")
    async with mosquitto_sub(broker, f"{mine}-bridges/#") as late:
        [retained] = await late.until(len, "what is retained")
        assert retained["retain"] == 1


# --- Trouble ------------------------------------------------------------------------------------


async def test_a_broker_that_dies_in_a_batch_gets_all_of_it_when_it_is_back(make_mosquitto, mine):
    broker = make_mosquitto()
    sent = batch(200)
    async with mqtt_proxied(broker.host, broker.port) as proxy:
        seen = 0

        def dies(packet: bytes) -> None:
            nonlocal seen
            seen += packet[0] & 0xF0 == 0x30
            if seen == 100:
                broker.kill()

        proxy.after = dies
        results = await asyncio.gather(
            send(settings(proxy.port, mine), mine, sent), return_exceptions=True
        )
        delivered = results[0] if isinstance(results[0], list) else []
        assert all(isinstance(each, Unavailable | None) for each in delivered)
        assert delivered.count(None) < 200
        proxy.after = lambda _: None
        broker.start()
        async with mosquitto_sub(broker, f"{mine}/#") as subscriber:
            assert await send(settings(proxy.port, mine), mine, sent) == [None] * 200
            await subscriber.until(lambda got: len(got) == 200, "all 200")


async def test_who_was_taken_over_is_unavailable_and_can_come_back(broker, mine):
    """This Mosquitto hangs up without a word; what is said to others, test_mqtt_answers knows."""
    made = settings(broker.port, mine, client_id=f"twice-{mine}")
    async with sink.open(made, place(mine)) as first:
        await first([make(1)])
        async with sink.open(made, place(mine)) as second:
            assert list(await second([make(2)])) == [None]
            with pytest.raises(Unavailable, match=r"the connection broke|take over"):
                await first([make(3)])
    assert await send(made, mine, [make(3)]) == [None]


async def test_a_connection_that_ends_in_silence_is_reported_and_one_that_we_end_is_not(
    broker, mine
):
    told: list[Unavailable] = []
    here = replace(place(mine), lost=told.append)
    made = settings(broker.port, mine, client_id=f"silent-{mine}")
    twin = sink.open(made, place(mine))
    async with asyncio.timeout(PATIENCE), sink.open(made, here), twin:
        while not told:
            await asyncio.sleep(0.01)
    async with asyncio.timeout(PATIENCE), sink.open(made, here) as sending:
        await sending([make(1)])
    why = f"the connection broke soon after it began; does another client use client id silent-{mine}?"
    assert [str(one) for one in told] == [why]


def more_than(count: int, told: list[Unavailable]) -> bool:
    return len(told) > count


async def test_two_with_one_client_id_wait_longer_each_time_where_the_server_just_hangs_up(
    broker, mine
):
    told: list[Unavailable] = []
    here = replace(place(mine), lost=told.append)
    made = settings(broker.port, mine, client_id=f"rivals-{mine}")
    for _ in range(3):
        before = len(told)
        async with sink.open(made, here), sink.open(made, place(mine)):
            await until(partial(more_than, before, told))
    assert [one.retry_after for one in told] == [1, 2, 4]


# --- Who is let in ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_passwords_are_checked_and_a_new_one_is_used_with_the_next_batch(
    make_mosquitto, mine, tmp_path, version
):
    broker = make_mosquitto(users={"ann": "first", "bob": "other"})
    file = tmp_path / "password"
    file.write_text("first")
    made = settings(
        broker.port, mine, username="ann", password={"file": str(file)}, version=version
    )
    with_wrong = settings(broker.port, mine, username="bob", password="wrong", version=version)
    assert "the server " in await why(with_wrong, mine)
    async with sink.open(made, place(mine)) as sending:
        assert list(await sending([make(1)])) == [None]
        broker.reload(users={"ann": "second-one"})
        file.write_text("second-one")
        assert list(await sending([make(2)])) == [None]
        file.unlink()
        assert list(await sending([make(3)])) == [None]
    file.write_text("first")
    told = await why(made, mine)
    assert "does not accept this username" in told or "refuses the username or password" in told
    assert "first" not in told


async def test_tls_checks_the_servers_certificate_and_name(broker, certificates, mine):
    tls = {"ca": str(certificates.authority)}
    good = settings(broker.ports["TLS"], mine, tls=tls, alpn=["mqtt"])
    assert await send(good, mine, [make()]) == [None]
    for port, ca, said in (
        ("EXPIRED", tls, "its certificate is not accepted: certificate has expired"),
        ("WRONG_HOST", tls, "its certificate is not accepted: IP address mismatch"),
        ("TLS", True, "its certificate is not accepted: unable to get local issuer"),
        ("PLAIN", tls, "it closed the connection"),
    ):
        told = await why(settings(broker.ports[port], mine, tls=ca), mine)
        assert said in told, (port, told)
    assert "it closed the connection" in await why(settings(broker.ports["TLS"], mine), mine)
    blind = settings(broker.ports["EXPIRED"], mine, tls={"insecure": True})
    assert await send(blind, mine, [make()]) == [None]


async def test_a_client_certificate_is_shown_and_may_be_exchanged(
    broker, certificates, mine, tmp_path
):
    ours = tmp_path / "client.pem"
    shutil.copy(certificates.client.both, ours)
    tls = {"ca": str(certificates.authority), "certificate": str(ours)}
    made = settings(broker.ports["MTLS"], mine, tls=tls)
    assert "client certificate" in made.describe()
    async with sink.open(made, place(mine)) as sending:
        assert list(await sending([make(1)])) == [None]
        shutil.copy(certificates.other_client.both, ours)
        with pytest.raises(
            Unavailable, match=r"rejects our TLS|closed the connection|connection broke"
        ):
            await sending([make(2)])
    shutil.copy(certificates.client.both, ours)
    assert await send(made, mine, [make(2)]) == [None]
    without = settings(broker.ports["MTLS"], mine, tls={"ca": str(certificates.authority)})
    told = await why(without, mine)
    assert f"127.0.0.1:{broker.ports['MTLS']}: " in told
    assert "client certificate" in told


@pytest.mark.parametrize("name", ["WS", "WSS"])
async def test_websockets_lead_there_too(broker, certificates, mine, name):
    keys = {"transport": "websockets", "path": "/mqtt", "headers": {"x-tenant": "a"}}
    if name == "WSS":
        keys["tls"] = {"ca": str(certificates.authority)}
    sent = batch(30)
    async with mosquitto_sub(broker, f"{mine}/#") as subscriber:
        assert await send(settings(broker.ports[name], mine, **keys), mine, sent) == [None] * 30
        await subscriber.until(lambda got: len(got) == 30, "all 30")


async def test_a_plain_listener_is_not_a_websocket(broker, mine):
    told = await why(settings(broker.port, mine, transport="websockets"), mine)
    assert "it does not offer MQTT over WebSockets at this path" in told


async def test_the_check_says_how_it_connected(broker, certificates, mine):
    tls = {"ca": str(certificates.authority)}
    made = settings(broker.ports["TLS"], mine, tls=tls)
    async with sink.open(made, place(mine)) as sending:
        said = await proved(sink, made, place(mine))
        assert list(await sending([make()])) == [None]
    assert said.startswith(f"connected at 127.0.0.1:{broker.ports['TLS']} by MQTT 5 over TLS")
