"""One request to the collector: token, channel, TLS, proxy, and how much of an answer is read."""

import ssl
from dataclasses import replace
from uuid import UUID

import pytest
from aiohttp import web
from support.canned_server import CannedServer, http
from support.certificates import issue
from support.cloudevents import batch
from support.splunk_sending import PLACE, configured, deliver
from support.splunk_server import TOKEN, splunk_server

from bridge.plugins import Place, Unavailable
from sinks.splunk import sink
from sinks.splunk.connection import name_channel


def test_the_channel_is_the_same_after_a_restart_and_another_for_each_vm_and_sink():
    places = [PLACE, Place({"vm_id": "vm-2"}, sink="siem"), Place({"vm_id": "vm-1"}, sink="other")]
    named = [name_channel(place) for place in places]
    assert len(set(named)) == 3
    assert named[0] == name_channel(PLACE) == str(UUID(named[0]))


async def test_entering_looks_whether_the_collector_is_there_and_sends_nothing(server):
    async with sink.open(configured(server.url), PLACE):
        assert server.requests == []
    for keys, why in (
        ({"url": "http://127.0.0.1:9"}, "http://127.0.0.1:9: nothing listens there"),
        ({"url": server.url.replace("http:", "https:")}, "it does not use TLS on this port"),
        ({"proxy": "http://127.0.0.1:9"}, "the proxy cannot be reached: nothing listens there"),
    ):
        with pytest.raises(Unavailable, match=why):
            async with sink.open(configured(**{"url": server.url, **keys}), PLACE):
                pass


async def test_redirects_are_not_followed_with_the_token(server):
    server.canned = web.Response(status=307, headers={"Location": f"{server.url}/elsewhere"})
    [result] = await deliver(server, batch(1))
    assert isinstance(result, Unavailable)
    assert len(server.requests) == 1


async def test_an_answer_without_end_is_not_read_to_its_end(server):
    server.canned = web.Response(body=b" " * (5 * 1024 * 1024))
    [result] = await deliver(server, batch(1))
    assert isinstance(result, Unavailable)


async def test_a_token_in_a_file_is_read_again_when_it_changes(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("wrong")
    async with sink.open(configured(server.url, token={"file": str(file)}), PLACE) as send:
        [result] = await send(batch(1))
        assert str(result) == "it does not know the token (403: Invalid token)"
        file.write_text(TOKEN)
        assert list(await send(batch(1))) == [None]
        file.write_text("with\nline feed")
        [result] = await send(batch(1))
        assert isinstance(result, Unavailable)
        assert "characters that are not allowed in a token" in str(result)


async def test_it_goes_through_a_proxy():
    async with CannedServer(http(200, {"code": 0})) as proxy:
        keys = {"proxy": proxy.url, "insecure": True}
        async with sink.open(configured("http://splunk.example:8088", **keys), PLACE) as send:
            assert list(await send(batch(1))) == [None]
    assert proxy.requests[0].target == "http://splunk.example:8088/services/collector/event"


async def test_tls_is_verified_unless_that_is_not_wanted(tmp_path):
    files = issue(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server.certificate, files.server.key)
    async with splunk_server(context) as server:
        assert await deliver(server, batch(1), tls={"ca": str(files.authority)}) == [None]
        assert await deliver(server, batch(1), tls={"insecure": True}) == [None]
        [result] = await deliver(server, batch(1), tls={"ca": str(files.other_authority)})
        assert "its certificate is not accepted" in str(result)
        [result] = await deliver(server, batch(1))
        assert "its certificate is not accepted" in str(result)


async def test_each_sink_has_a_channel_with_receipts_of_its_own(slow):
    slow.indexed = True
    places = [PLACE, replace(PLACE, sink="other")]
    for place in places:
        async with sink.open(configured(slow.url, acknowledge=True), place) as send:
            assert list(await send(batch(1))) == [None]
    asked = [headers["X-Splunk-Request-Channel"] for _, headers, _ in slow.asked("/event")]
    assert asked == [name_channel(place) for place in places]
