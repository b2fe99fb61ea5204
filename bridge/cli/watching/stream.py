"""Reads the CloudEvents of the running bridge's stream, from where the reader left off."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridge.cli import client
from bridge.cli.shell import Ask

if TYPE_CHECKING:
    from aiohttp import StreamReader

PATH = "/api/v1/stream"
SILENCE = 45.0
"""Three heartbeats: a bridge that is silent for longer is gone."""
_LARGEST = 1024 * 1024


@dataclass(slots=True)
class StreamAddress:
    """How far the stream was read, None before the first connection; and whether with strays."""

    last: str | None = None
    strays: bool = False


@asynccontextmanager
async def stream(ask: Ask, place: StreamAddress) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
    """CloudEvents after *place*, which advances; without a place the stream begins now.

    The iterator ends when the bridge ends the stream. Raises `Unreachable` and `RequestRefused`.
    """
    headers = {"Last-Event-ID": place.last} if place.last is not None else {}
    path = f"{PATH}?strays=true" if place.strays else PATH
    request = client.ApiRequest("GET", path, headers=headers, timeout=None, silence=SILENCE)
    async with client.reach(request, where=ask.where, token=ask.token) as answer:
        if answer.status != 200:
            raise client.refusal(answer.status, await answer.read())
        if answer.content_type != "text/event-stream":
            raise client.RequestRefused(answer.status, f"{PATH} was not answered by a bridge.")
        yield _events(answer.content, place)


async def _events(content: "StreamReader", place: StreamAddress) -> AsyncGenerator[dict[str, Any]]:
    """Parse events. The first one, `connected`, only says where the stream begins."""
    given, size, kind = place.last, 0, ""
    data: list[str] = []
    async for line in _lines(content):
        name, _, value = line.partition(": ")
        size += len(line) + 1
        if size > _LARGEST:
            raise client.Unreachable("The bridge sent a CloudEvent of more than 1 MiB.")
        if name == "id":
            given = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif not line:
            if data and kind != "connected":
                yield _decoded("\n".join(data))
            place.last, data, size, kind = given, [], 0, ""


async def _lines(content: "StreamReader") -> AsyncGenerator[str]:
    """Complete lines; a last line that was cut off is dropped."""
    rest = b""
    async for piece in content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        if len(rest) > _LARGEST:
            raise client.Unreachable("The bridge sent a line of more than 1 MiB.")


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("data"), dict):
        raise client.Unreachable("The bridge sent something that is not a CloudEvent.")
    return found
