"""What the syslog sink knows of its connections: ends, resets, silence, certificates."""

import asyncio
import contextlib
import socket
import ssl

import pytest
from support.cloudevents import LARGEST, batch
from support.results import proved
from support.rsyslog_stand_in import receiving
from support.syslog_sending import FOR_EACH, PLACE, comes_to, configured, deliver, serving

from bridge.plugins import Unavailable
from sinks.syslog import connection, sink


def here(family: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(family) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not here(socket.AF_INET6), reason="this machine has no IPv6")
async def test_ipv6_is_an_address_like_any_other():
    async with receiving("::1") as receiver:
        assert await deliver(receiver.address, batch(2)) == [None] * 2
        await comes_to(receiver, 2)


async def test_of_several_addresses_the_one_that_answers_is_taken(monkeypatch):
    async with receiving() as receiver:
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def two(host, port, **more):
            dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))
            return [dead, *await real("127.0.0.1", port, **more)]

        monkeypatch.setattr(loop, "getaddrinfo", two)
        assert await deliver(f"tcp://siem.example:{receiver.port}", batch(1)) == [None]


@pytest.mark.parametrize("reset", [False, True], ids=["in order", "reset"])
async def test_a_connection_closed_between_batches_is_noticed_before_the_next(reset):
    async with receiving() as receiver:
        async with sink.open(configured(receiver.address), PLACE) as send:
            await send(batch(1))
            await comes_to(receiver, 1)
            await receiver.hang_up(reset=reset)
            await asyncio.sleep(0.01)
            with pytest.raises(Unavailable, match="it closed the connection"):
                await send(batch(1))
        assert len(receiver.messages) == 1


@pytest.mark.parametrize("keys", [{}, FOR_EACH], ids=["kept", "for each batch"])
async def test_what_is_under_way_when_the_receiver_dies_is_not_delivered(keys):
    """More than the buffers hold, so that some of it is still here when the reset comes."""
    async with receiving() as receiver:
        settings = configured(receiver.address, max_size="80KiB", **keys)
        async with sink.open(settings, PLACE) as send:
            receiver.stall()
            task = asyncio.ensure_future(send(batch(150, size=LARGEST)))
            await receiver.met(2 if keys else 1)
            await asyncio.wait({task}, timeout=0.1)
            assert not task.done()
            await receiver.hang_up(reset=True)
            with pytest.raises(Unavailable, match="it closed the connection"):
                await task


async def test_what_a_dying_receiver_had_not_read_is_known_with_a_connection_for_each_batch():
    async with (
        receiving() as receiver,
        sink.open(configured(receiver.address, **FOR_EACH), PLACE) as send,
    ):
        receiver.stall()
        task = asyncio.ensure_future(send(batch(1)))
        await receiver.met(2)
        await asyncio.wait({task}, timeout=0.1)
        assert not task.done()
        await receiver.hang_up(reset=True)
        with pytest.raises(Unavailable, match="it closed the connection"):
            await task


async def test_a_receiver_that_never_closes_has_not_confirmed():
    async with receiving(closes=False) as receiver:
        keys = {**FOR_EACH, "retry": {"timeout": "200ms"}}
        with pytest.raises(Unavailable, match=r"did not accept everything within 0\.18 s"):
            await deliver(receiver.address, batch(1), **keys)
        assert len(receiver.messages) == 1


async def test_one_that_does_not_read_is_told_by_its_silence():
    async with receiving() as receiver:
        receiver.stall()
        keys = {"max_size": "80KiB", "retry": {"timeout": "300ms"}}
        with pytest.raises(Unavailable, match=r"did not accept everything within 0\.27 s"):
            await deliver(receiver.address, batch(150, size=LARGEST), **keys)


@pytest.mark.parametrize("keys", [{}, FOR_EACH], ids=["kept", "for each batch"])
async def test_tls_is_verified_and_says_what_it_does_not_accept(certificates, keys):
    async with receiving(context=serving(certificates)) as receiver:
        trusted = {"ca": str(certificates.authority)}
        assert await deliver(receiver.address, batch(2), tls=trusted, **keys) == [None] * 2
        await comes_to(receiver, 2)
        for tls in ({"ca": str(certificates.other_authority)}, None):
            more = {"tls": tls} if tls else {}
            with pytest.raises(Unavailable, match="its certificate is not accepted"):
                await deliver(receiver.address, batch(1), **more, **keys)
    for identity in (certificates.expired_server, certificates.wrong_host_server):
        async with receiving(context=serving(certificates, identity)) as receiver:
            with pytest.raises(Unavailable, match="its certificate is not accepted"):
                await deliver(receiver.address, batch(1), tls=trusted, **keys)


@pytest.mark.parametrize("keys", [{}, FOR_EACH], ids=["kept", "for each batch"])
async def test_who_lacks_the_certificate_that_is_wanted_has_delivered_nothing(certificates, keys):
    """In TLS 1.3 the refusal comes when the client is long done."""
    context = serving(certificates)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    client = certificates.client
    trusted = {"ca": str(certificates.authority)}
    shown = {"certificate": str(client.certificate), "key": str(client.key)}
    async with receiving(context=context) as receiver:
        with pytest.raises(Unavailable, match="certificate"):
            await deliver(receiver.address, batch(1), tls=trusted, **keys)
        with pytest.raises(Unavailable, match="certificate"):
            await proved(sink, configured(receiver.address, tls=trusted, **keys), PLACE)
        assert await deliver(receiver.address, batch(1), tls=trusted | shown, **keys) == [None]
        await comes_to(receiver, 1)


async def test_a_receiver_that_gives_no_tickets_is_believed_after_a_moment(certificates):
    context = serving(certificates)
    context.num_tickets = 0
    async with receiving(context=context) as receiver:
        tls = {"ca": str(certificates.authority)}
        assert await deliver(receiver.address, batch(1), tls=tls) == [None]


async def test_plain_and_tls_mixed_up_are_found_out(certificates):
    async with receiving() as receiver:
        address = receiver.address.replace("tcp", "tls")
        with pytest.raises(Unavailable, match="tls://127"):
            await deliver(address, batch(1), retry={"timeout": "500ms"})


async def test_a_name_that_is_none_says_so(monkeypatch):
    async def nowhere(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", nowhere)
    for scheme in ("udp", "tcp", "tls"):
        with pytest.raises(Unavailable, match=r"siem\.example:1: its name cannot be resolved"):
            await deliver(f"{scheme}://siem.example:1", batch(1))


async def test_where_the_system_does_not_tell_what_is_confirmed_written_has_to_do(monkeypatch):
    monkeypatch.setattr(connection.sys, "platform", "win32")
    async with receiving() as receiver:
        assert await deliver(receiver.address, batch(2)) == [None] * 2
