"""`seb check --connect`: the collector answers and accepts the token. Nothing is published."""

import asyncio

from bridge.plugins import Place, Unavailable
from sinks._limit import batch_limit
from sinks.splunk.connection import Collector
from sinks.splunk.settings import SplunkSettings


async def check_sink(settings: SplunkSettings, place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` as sending would."""
    within = batch_limit(settings)
    try:
        async with asyncio.timeout(within), Collector.open(settings, place) as collector:
            await collector.admit()
            if settings.acknowledge:
                await collector.acknowledge()
    except TimeoutError:
        raise Unavailable(f"{settings.url}: no answer within {within:g} s") from None
    more = " and acknowledges" if settings.acknowledge else ""
    index = f"; the first event shows whether the token may use index {settings.index}"
    known = index if settings.index else ""
    return f"reached {settings.url}, which accepts the token{more}; nothing was published{known}"
