"""The way to a receiver: TLS, client certificates, proxies, and what a check proves of it."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from support.certificates import Certificates, Identity, issue
from support.cloudevents import make
from support.webhook_proxy import forward_proxy
from support.webhook_receiver import Receiver, receiving

from bridge.plugins import Place, Result, Unavailable
from sinks.webhook import WebhookSettings, sink
from sinks.webhook.errors import unanswered


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


def configured(receiver: Receiver, **keys: Any) -> WebhookSettings:
    return WebhookSettings.model_validate({"type": "webhook", "url": receiver.url, **keys})


async def attempt(receiver: Receiver, **keys: Any) -> Result:
    async with sink.open(configured(receiver, **keys), Place()) as send:
        [result] = await send([make()])
        return result


async def checked(receiver: Receiver, **keys: Any) -> str:
    assert sink.check is not None
    return await sink.check(configured(receiver, **keys), Place())


async def test_a_receiver_is_trusted_by_its_authority(certificates):
    async with secured(certificates) as receiver:
        tls = {"ca": str(certificates.authority)}
        assert await attempt(receiver, tls=tls) is None
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
        result = await attempt(receiver, tls=tls)
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
        assert await attempt(receiver, tls=shown) is None
        assert "over TLS" in await checked(receiver, tls=shown)
        result = await attempt(receiver, tls=tls)
        assert type(result) is Unavailable
        with pytest.raises(Unavailable) as told:
            await checked(receiver, tls=tls)
    for problem in (result, told.value):
        assert "a client certificate" in str(problem)


async def test_certificates_that_are_exchanged_take_effect_with_the_next_batch(
    certificates, tmp_path
):
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificates.other_authority.read_bytes())
    async with (
        secured(certificates) as receiver,
        sink.open(configured(receiver, tls={"ca": str(ca)}), Place()) as send,
    ):
        assert type((await send([make()]))[0]) is Unavailable
        ca.write_bytes(certificates.authority.read_bytes())
        assert await send([make()]) == [None]
        ca.unlink()
        [problem] = await send([make()])
    assert "cannot be read" in str(problem)


async def test_tls_where_there_is_none_says_so():
    async with receiving() as receiver:
        url = receiver.url.replace("http://", "https://")
        result = await attempt(receiver, url=url)
    assert str(result) == f"https://127.0.0.1:{receiver.port}: it does not speak TLS there"


async def test_a_check_without_tls_says_so():
    async with receiving() as receiver:
        assert "without TLS" in await checked(receiver)
        assert receiver.got == []
        assert len(receiver.asked) == 1


# --- proxies ----------------------------------------------------------------------------------


async def test_a_proxy_tunnels_tls_and_sees_nothing_of_it(certificates):
    async with secured(certificates) as receiver, forward_proxy() as proxy:
        keys = {"tls": {"ca": str(certificates.authority)}, "bearer": "t0p"}
        way = {"url": proxy.url, "username": "ann", "password": "pw"}
        assert await attempt(receiver, proxy=way, **keys) is None
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
        assert await attempt(receiver, proxy=way) is None
        assert await attempt(receiver, proxy=proxy.url) is None
    assert proxy.heads[0].startswith(f"POST {receiver.url} HTTP/1.1")
    assert "Proxy-Authorization: Basic YW5uOnB3" in proxy.heads[0]
    assert "Proxy-Authorization" not in proxy.heads[1]


async def test_a_proxy_that_is_not_there_or_says_no_is_told_from_the_receiver(certificates):
    async with secured(certificates) as receiver:
        tls = {"ca": str(certificates.authority)}
        async with forward_proxy(407) as proxy:
            refused = await attempt(receiver, tls=tls, proxy=proxy.url)
        absent = await attempt(receiver, tls=tls, proxy=proxy.url)
    assert str(refused).endswith(": the proxy answered 407 instead of connecting us")
    assert str(absent).endswith(": its proxy cannot be reached: nothing listens there")


async def test_a_proxy_that_wants_a_password_for_clear_text_is_told_too():
    async with receiving() as receiver, forward_proxy(407) as proxy:
        result = await attempt(receiver, proxy=proxy.url)
    assert "the proxy does not accept our credentials" in str(result)


# --- words for errors -------------------------------------------------------------------------


def every(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(every(each) for each in kind.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(every(aiohttp.ClientError), key=str), ids=str)
def test_whatever_aiohttp_raises_has_words(kind):
    error = kind.__new__(kind)
    for name in ("os_error", "certificate_error", "_os_error", "_certificate_error"):
        with contextlib.suppress(AttributeError):
            setattr(error, name, OSError(5, "Input/output error"))
    with contextlib.suppress(AttributeError):
        error.status = 502
    said = str(unanswered(error, "https://a.example"))
    assert said.startswith("https://a.example: ")
    assert len(said) > len("https://a.example: ")
