"""The webhook sink as its tests use it: settings for a receiver, and a session with it."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from support.cloudevents import make
from support.webhook_receiver import Receiver

from bridge.plugins import CloudEvent, Place, Result, Send, Unavailable
from sinks.webhook import WebhookSettings, sink

PLACE = Place({"vm_name": "web-1"}, sink="hook")


def configured(receiver: Receiver, **keys: Any) -> WebhookSettings:
    return WebhookSettings.model_validate({"type": "webhook", "url": receiver.url, **keys})


@contextlib.asynccontextmanager
async def session(receiver: Receiver, **keys: Any) -> AsyncIterator[Send]:
    async with sink.open(configured(receiver, **keys), PLACE) as send:
        yield send


async def attempt(
    receiver: Receiver, sent: Sequence[CloudEvent] | None = None, **keys: Any
) -> list[Result]:
    """One typical CloudEvent, unless *sent* names others; entering may already fail."""
    sent = [make()] if sent is None else sent
    try:
        async with session(receiver, **keys) as send:
            return list(await send(sent))
    except Unavailable as problem:
        return [problem] * len(sent)


async def checked(receiver: Receiver, **keys: Any) -> str:
    assert sink.check is not None
    return await sink.check(configured(receiver, **keys), PLACE)
