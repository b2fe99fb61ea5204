"""The way to a receiver: TLS, client certificates, proxies, and answers that break off."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.certificates import Certificates, Identity, issue
from support.cloudevents import make
from support.sink_contract import Leftovers
from support.webhook_proxy import forward_proxy
from support.webhook_receiver import Receiver, endless, raw, receiving, says
from support.webhook_sending import PLACE, attempt, checked, configured, session

from bridge.plugins import Place, Rejected, Unavailable
from sinks.webhook import WebhookSettings, sink


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


def serving(files: Certificates, identity: Identity, *, clients: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.certificate, identity.key)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files.authority)
    return context


@contextlib.asynccontextmanager
async def secured(
    files: Certificates, name: str = "server", **more: Any
) -> AsyncIterator[Receiver]:
    async with receiving(serving(files, getattr(files, name), **more)) as receiver:
        yield receiver


async def test_entering_looks_whether_the_receiver_is_there_and_sends_nothing(certificates):
    async with secured(certificates) as receiver:
        async with session(receiver, tls={"ca": str(certificates.authority)}):
            pass
        with pytest.raises(Unavailable, match="its certificate is not accepted"):
            async with session(receiver, tls={"ca": str(certificates.other_authority)}):
                pass
        await receiver.down()
        with pytest.raises(Unavailable, match=r"127.0.0.1:\d+: nothing listens there"):
            async with session(receiver):
                pass
        assert receiver.got == receiver.asked == []


async def test_behind_a_proxy_entering_looks_at_the_proxy(receiver):
    with pytest.raises(Unavailable, match="the proxy cannot be reached: nothing listens there"):
        async with session(receiver, proxy={"url": "http://127.0.0.1:9"}):
            pass


async def test_a_receiver_is_trusted_by_its_authority(certificates):
    async with secured(certificates) as receiver:
        tls = {"ca": str(certificates.authority)}
        assert await attempt(receiver, tls=tls) == [None]
        assert await checked(receiver, tls=tls) == (
            f"reached https://127.0.0.1:{receiver.port} over TLS (it answered 405 to OPTIONS); "
            "nothing was posted"
        )
        assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("name", "authority", "why"),
    [
        ("server", None, "its certificate is not accepted: "),
        ("server", "other_authority", "its certificate is not accepted: "),
        ("expired_server", "authority", "its certificate is not accepted: certificate has expired"),
        ("wrong_host_server", "authority", "its certificate is not accepted: "),
    ],
)
async def test_a_certificate_that_proves_nothing_ends_it(certificates, name, authority, why):
    async with secured(certificates, name) as receiver:
        tls = {"ca": str(getattr(certificates, authority))} if authority else None
        [result] = await attempt(receiver, tls=tls)
        assert type(result) is Unavailable
        assert str(result).startswith(f"https://127.0.0.1:{receiver.port}: {why}")
        with pytest.raises(Unavailable, match="certificate is not accepted"):
            await checked(receiver, tls=tls)
        assert receiver.got == []


async def test_a_client_certificate_is_shown_when_there_is_one(certificates):
    client = certificates.client
    tls = {"ca": str(certificates.authority)}
    shown = {**tls, "certificate": str(client.certificate), "key": str(client.key)}
    async with secured(certificates, clients=True) as receiver:
        assert await attempt(receiver, tls=shown) == [None]
        assert "over TLS" in await checked(receiver, tls=shown)
        [result] = await attempt(receiver, tls=tls)
        assert type(result) is Unavailable
        with pytest.raises(Unavailable) as told:
            await checked(receiver, tls=tls)
    for problem in (result, told.value):
        assert "a client certificate" in str(problem)


async def test_certificates_that_are_exchanged_take_effect_with_the_next_batch(
    certificates, tmp_path
):
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificates.authority.read_bytes())
    async with (
        secured(certificates) as receiver,
        sink.open(configured(receiver, tls={"ca": str(ca)}), Place()) as send,
    ):
        ca.write_bytes(certificates.other_authority.read_bytes())
        assert type((await send([make()]))[0]) is Unavailable
        ca.write_bytes(certificates.authority.read_bytes())
        assert await send([make()]) == [None]
        ca.unlink()
        [problem] = await send([make()])
    assert "cannot be read" in str(problem)


async def test_tls_where_there_is_none_says_so():
    async with receiving() as receiver:
        url = receiver.url.replace("http://", "https://")
        [result] = await attempt(receiver, url=url)
    assert str(result) == f"https://127.0.0.1:{receiver.port}: it does not use TLS on this port"


async def test_a_proxy_tunnels_tls_and_sees_nothing_of_it(certificates):
    async with secured(certificates) as receiver, forward_proxy() as proxy:
        keys: dict[str, Any] = {"tls": {"ca": str(certificates.authority)}, "bearer": "t0p"}
        way = {"url": proxy.url, "username": "ann", "password": "pw"}
        assert await attempt(receiver, proxy=way, **keys) == [None]
        assert "reached" in await checked(receiver, proxy=way, **keys)
    [tunnel, _] = proxy.heads
    assert tunnel.startswith(f"CONNECT 127.0.0.1:{receiver.port} ")
    assert "Proxy-Authorization: Basic YW5uOnB3" in tunnel
    assert "t0p" not in tunnel
    assert "Proxy-Authorization" not in receiver.got[0].headers
    assert receiver.got[0].headers["Authorization"] == "Bearer t0p"


async def test_a_proxy_passes_clear_text_on():
    async with receiving() as receiver, forward_proxy() as proxy:
        way = {"url": proxy.url, "username": "ann", "password": "pw"}
        assert await attempt(receiver, proxy=way) == [None]
        assert await attempt(receiver, proxy=proxy.url) == [None]
    assert proxy.heads[0].startswith(f"POST {receiver.url} HTTP/1.1")
    assert "Proxy-Authorization: Basic YW5uOnB3" in proxy.heads[0]
    assert "Proxy-Authorization" not in proxy.heads[1]


async def test_errors_of_the_proxy_differ_from_those_of_the_receiver(certificates):
    async with secured(certificates) as receiver:
        tls = {"ca": str(certificates.authority)}
        async with forward_proxy(407) as proxy:
            [refused] = await attempt(receiver, tls=tls, proxy=proxy.url)
        [absent] = await attempt(receiver, tls=tls, proxy=proxy.url)
    assert str(refused).endswith(": the proxy answered 407 instead of connecting")
    assert str(absent).endswith(": the proxy cannot be reached: nothing listens there")


async def test_a_proxy_that_wants_a_password_for_clear_text_is_reported_too():
    async with receiving() as receiver, forward_proxy(407) as proxy:
        [result] = await attempt(receiver, proxy=proxy.url)
    assert "the proxy does not accept our credentials" in str(result)


async def test_a_request_says_who_asks_and_nothing_of_ours_is_followed_or_unpacked(receiver):
    assert await attempt(receiver, url=receiver.url + "/a%2Fb?x=%20&y=1") == [None]
    [got] = receiver.got
    assert (got.method, got.path) == ("POST", "/hook/a%2Fb?x=%20&y=1")
    assert got.headers["User-Agent"].startswith("scheduled-events-bridge/")
    assert got.headers["Accept-Encoding"] == "identity"
    assert got.headers["Content-Length"] == str(len(got.body))
    assert got.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert "Cookie" not in got.headers


async def test_a_redirect_is_never_followed(receiver):
    async with receiving() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            receiver.answers.append(says(status, Location=elsewhere.url))
        results = [(await attempt(receiver))[0] for _ in range(5)]
        assert [type(result) for result in results] == [Rejected] * 5
        assert all("points to 127.0.0.1;" in str(result) for result in results)
        assert elsewhere.got == elsewhere.asked == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "it closed the connection without an answer"),
        (b"HTTP/1.1 20", "it closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "it closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "its answer is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "its answer is not valid HTTP"),
    ],
    ids=range(5),
)
async def test_an_answer_that_breaks_off_before_its_body_proves_nothing(receiver, said, why):
    receiver.answers.append(raw(said))
    async with session(receiver) as send:
        [result] = await send([make()])
        assert type(result) is Unavailable
        assert why in str(result)
        assert "127.0.0.1" in str(result)
        assert await send([make()]) == [None]


async def test_a_body_that_breaks_off_does_not_change_the_status(receiver):
    head = b"Content-Length: 1000\r\n\r\nhalf a"
    receiver.answers += [raw(b"HTTP/1.1 200 OK\r\n" + head), raw(b"HTTP/1.1 400 No\r\n" + head)]
    assert await attempt(receiver) == [None]
    [result] = await attempt(receiver)
    assert str(result) == "it answered 400 (half a)"


@pytest.mark.parametrize("status", [200, 400])
async def test_an_answer_without_end_is_read_for_64_kib_only(receiver, status):
    written: list[int] = []
    receiver.answers.append(endless(status, written))
    before = Leftovers.now()
    async with session(receiver) as send:
        [result] = await send([make()])
        assert result is None if status == 200 else type(result) is Rejected
        assert len(str(result)) < 300
        assert await send([make()]) == [None]
    await before.settled()
    assert sum(written) < 16 * 1024 * 1024  # what the buffers on the way hold


async def test_a_name_that_does_not_exist_says_so():
    settings = WebhookSettings(type="webhook", url="https://no.such.name.invalid/s3cret")
    with pytest.raises(Unavailable) as problem:
        async with sink.open(settings, PLACE):
            pass
    assert str(problem.value) == "https://no.such.name.invalid: its name cannot be resolved"


async def test_proxy_variables_of_the_environment_are_not_read(receiver, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await attempt(receiver) == [None]
