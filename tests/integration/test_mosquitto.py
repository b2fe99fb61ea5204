"""The broker of the MQTT tests, and the clients and the proxy that they use, each by itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.certificates import issue
from support.debian import ToolFailed
from support.mosquitto import Mosquitto
from support.mosquitto_clients import mosquitto_pub, mosquitto_sub
from support.tcp_proxy import tcp_proxied

Make = Callable[..., Mosquitto]


@pytest.mark.parametrize("version", ["5", "mqttv311"])
async def test_what_one_client_publishes_the_other_prints(mosquitto, version: str):
    topic = f"plain/{version}"
    async with mosquitto_sub(mosquitto, topic, version=version) as found:
        await mosquitto_pub(mosquitto, topic, b'{"a":\n"\xc3\xa4"}', version=version)
        await mosquitto_pub(mosquitto, topic, b"", version=version)
        await found.until(lambda got: len(got) == 2, "two messages")
    assert found.payloads == ['{"a":\n"ä"}', ""]


async def test_a_stopped_and_a_killed_broker_come_back_with_what_they_kept(make_mosquitto: Make):
    broker = make_mosquitto(persistent=True)
    session = ("-c", "-i", "keeper", "-x", "60")
    async with mosquitto_sub(broker, "kept", *session):
        pass
    for number, end in enumerate((broker.stop, broker.kill)):
        await mosquitto_pub(broker, "kept", str(number).encode())
        broker.save()
        end()
        broker.start()
    async with mosquitto_sub(broker, "kept", *session) as found:
        await found.until(lambda got: len(got) == 2, "both")
    assert found.payloads == ["0", "1"]


async def test_who_has_no_password_or_no_right_is_refused(make_mosquitto: Make):
    broker = make_mosquitto(users={"alice": "one"}, acl="user alice\ntopic read open\n")
    alice = ("-u", "alice", "-P", "one")
    async with mosquitto_sub(broker, "open", *alice):
        pass
    with pytest.raises(ToolFailed, match=r"ot authori[sz]ed"):
        await mosquitto_pub(broker, "open", b"x", "-u", "alice", "-P", "two")
    broker.reload(users={"alice": "two"})
    async with mosquitto_sub(broker, "open", "-u", "alice", "-P", "two"):
        pass


async def test_it_has_tls_and_websockets_when_asked(make_mosquitto: Make, tmp_path: Path):
    certificates = issue(tmp_path / "certificates")
    broker = make_mosquitto(certificates=certificates, websockets=True)
    assert broker.ports.keys() == {
        "PLAIN", "TLS", "MTLS", "EXPIRED", "WRONG_HOST", "WS", "WSS",
    }  # fmt: skip
    trusting = ("--cafile", str(certificates.authority))
    for name, more in {
        "TLS": (),
        "MTLS": (
            "--cert",
            str(certificates.client.certificate),
            "--key",
            str(certificates.client.key),
        ),
    }.items():
        port = str(broker.ports[name])
        await mosquitto_pub(broker, "secure", b"x", "-p", port, *trusting, *more)
    for name in ("MTLS", "EXPIRED", "WRONG_HOST"):
        with pytest.raises(ToolFailed):
            await mosquitto_pub(broker, "secure", b"x", "-p", str(broker.ports[name]), *trusting)


async def test_a_stalled_proxy_says_nothing_and_a_released_one_goes_on(mosquitto):
    async with tcp_proxied(mosquitto.host, mosquitto.port) as proxy:
        async with mosquitto_sub(proxy, "through") as found:
            assert proxy.connections == 1
            proxy.stall()
            await mosquitto_pub(mosquitto, "through", b"late")
            await found.until(lambda _: b"late" in proxy.received, "the broker to have sent it")
            assert found.messages == []
            proxy.release()
            await found.until(len, "the message")
            await proxy.down()
        assert proxy.connections == 0
