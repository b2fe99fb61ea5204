"""What the commands read from the stream, and what they refuse."""

import pytest
from aiohttp import web
from support.impostor import impostor
from support.located import located
from support.served_bridge import config

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.shell import Ask
from bridge.cli.watching.stream import StreamAddress, stream


async def everything(settings, place):
    async with stream(Ask(located(settings)), place) as news:
        return [one async for one in news]


STRANGE = {
    "a page": (b"<html>", "text/html", "was not answered by a bridge"),
    "no JSON": (b"id: 1\ndata: ?\n\n", "text/event-stream", "not a CloudEvent"),
    "no data": (b'id: 1\ndata: {"id": "1"}\n\n', "text/event-stream", "not a CloudEvent"),
    "an endless line": (b"data: " + b"x" * 2**21, "text/event-stream", "line of more than 1"),
    "endless lines": (b"data: xxxx\n" * 2**18, "text/event-stream", "CloudEvent of more than 1"),
}


@pytest.mark.parametrize(("body", "kind", "sentence"), STRANGE.values(), ids=STRANGE)
async def test_another_servers_response_is_not_taken_for_a_stream(tmp_path, body, kind, sentence):
    async with impostor(lambda: web.Response(body=body, content_type=kind)) as port:
        with pytest.raises((RequestRefused, Unreachable), match=sentence):
            await everything(config(tmp_path, listen=f"127.0.0.1:{port}"), StreamAddress())


async def test_a_place_advances_with_every_id_and_a_cut_off_end_is_ignored(tmp_path):
    text = b'retry: 1\nid: a\n\n:\n\nid: b\ndata: {"data":\ndata: {}}\n\nid: c\ndata: {"data"'
    async with impostor(lambda: web.Response(body=text, content_type="text/event-stream")) as port:
        place = StreamAddress()
        found = await everything(config(tmp_path, listen=f"127.0.0.1:{port}"), place)
    assert found == [{"data": {}}]
    assert place.last == "b"
