"""`seb check --connect`: the collector is reached and takes the token; nothing is published."""

import asyncio

from bridge.plugins import Place, Unavailable
from sinks._limit import batch_limit
from sinks.splunk.connection import Collector
from sinks.splunk.settings import SplunkSettings


async def check_sink(settings: SplunkSettings, place: Place) -> str:
    """One sentence of what was proved. Raises `Unavailable` as sending would."""
    within = batch_limit(settings)
    try:
        async with asyncio.timeout(within), Collector.open(settings, place) as collector:
            await collector.admit()
            if settings.acknowledge:
                await collector.acknowledge()
    except TimeoutError:
        raise Unavailable(f"{settings.url}: no answer within {within:g} s") from None
    more = " and acknowledges" if settings.acknowledge else ""
    index = f"; whether index {settings.index} is open to it, the first event shows"
    known = index if settings.index else ""
    return f"reached {settings.url}, which takes the token{more}; nothing was published{known}"
