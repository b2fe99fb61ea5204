"""CloudEvents to Splunk's HTTP Event Collector, and if asked for, until they are indexed.

Read `settings`, then `sending` (a batch), `collector` (one request) and `errors`. `answers` and
`envelopes` are pure.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bridge.plugins import Place, Send, SinkPlugin, Unavailable
from sinks.splunk.binding import open_envelopes
from sinks.splunk.connection import Collector
from sinks.splunk.delivery import Session
from sinks.splunk.settings import SplunkSettings

__all__ = ["SplunkSettings", "sink"]

_OF_TIMEOUT = 0.9
"""What a batch may use of `retry.timeout`, so that results come before the bridge stops waiting."""


@asynccontextmanager
async def _open(settings: SplunkSettings, place: Place) -> AsyncGenerator[Send]:
    async with Collector.open(settings, place) as collector:
        if settings.acknowledge:
            # A token without receipts would take the same events again and again.
            await collector.acknowledge()
        yield Session(collector, open_envelopes(settings), _limit(settings)).send


async def _check(settings: SplunkSettings, place: Place) -> str:
    limit = _limit(settings)
    try:
        async with asyncio.timeout(limit), Collector.open(settings, place) as collector:
            await collector.admit()
            if settings.acknowledge:
                await collector.acknowledge()
    except TimeoutError:
        raise Unavailable(f"{settings.url}: no answer within {limit:g} s") from None
    more = " and acknowledges" if settings.acknowledge else ""
    index = f"; whether index {settings.index} is open to it, the first event shows"
    known = index if settings.index else ""
    return f"reached {settings.url}, which takes the token{more}; nothing was published{known}"


def _limit(settings: SplunkSettings) -> float:
    return settings.retry.timeout * _OF_TIMEOUT


sink = SinkPlugin(settings=SplunkSettings, open=_open, check=_check)
