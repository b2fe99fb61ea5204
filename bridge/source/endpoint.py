"""Which endpoint to poll: configured, remembered or found, and remembered from then on."""

import logging

from bridge.config import Source
from bridge.journal import Journal
from bridge.metadata.answers import Problem
from bridge.metadata.budget import Budget
from bridge.metadata.discovery import discover
from bridge.runtime.status import SourceStatus

log = logging.getLogger(__name__)


async def locate(
    source: Source, journal: Journal, status: SourceStatus, budget: Budget
) -> str | Problem:
    """The URL of the metadata service, or what was tried in vain."""
    configured = None if source.endpoint == "auto" else source.endpoint
    remembered = await journal.run(lambda store: store.recall("endpoint"))
    found, attempts = await discover(
        source.api_version, configured=configured, remembered=remembered, budget=budget
    )
    if found is None:
        tried = "; ".join(f"{one.candidate.url} {one.verdict}" for one in attempts)
        return Problem("unreachable", tried)
    if (found.url, found.origin) != (status.endpoint, status.origin):
        log.info("source.endpoint", extra={"url": found.url, "origin": found.origin})
    status.endpoint, status.origin = found.url, found.origin
    if configured is None and found.url != remembered:
        await journal.run(lambda store: store.remember(endpoint=found.url))
    return found.url
