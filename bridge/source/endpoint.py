"""The endpoint to poll and to approve at: its address, and the connection while there is one."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bridge.config import SourceSettings
from bridge.journal import Journal
from bridge.metadata.answers import OUTDATED, Accepted, SourceProblem
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.metadata.discovery import NOT_FOUND, discover
from bridge.runtime.status import SourceStatus

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Endpoint:
    """One connection for reading and for approving, with one budget for both.

    It outlives its pollers, which a reload replaces. `asked_again` is set when the document must
    be read again because it has changed.
    """

    budget: Budget = field(default_factory=Budget)
    asked_again: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _client: Metadata | None = None
    _was_read: bool = False
    _incarnation: int | str | None = None

    @asynccontextmanager
    async def connected(self, url: str, api_version: str) -> AsyncGenerator[Metadata]:
        async with Metadata(url, api_version, budget=self.budget) as client:
            self._client, self._was_read = client, False
            try:
                yield client
            finally:
                self._client = None

    def was_read(self, incarnation: int | str | None) -> None:
        """Note which document the journal has now."""
        self._was_read, self._incarnation = True, incarnation

    async def approve(
        self, choose: Callable[[int | str | None], Awaitable[Sequence[str]]]
    ) -> Accepted | SourceProblem:
        """Tell Azure between two polls, once a document was read.

        *choose* names the events when the request can leave: those that may start by what the
        journal says then, if it has the document with that incarnation.
        """
        async with self.turn:
            if self._client is None or not self._was_read:
                return OUTDATED
            known = self._incarnation
            return await self._client.approve(lambda: choose(known), known)

    def read_again(self) -> None:
        """Have the document read as soon as the budget allows."""
        self.asked_again.set()


async def locate(
    source: SourceSettings, journal: Journal, status: SourceStatus, budget: Budget
) -> str | SourceProblem:
    """The URL of the metadata service, or a problem that lists what was tried."""
    configured = None if source.endpoint == "auto" else source.endpoint
    remembered = await journal.run(lambda store: store.recall("endpoint"))
    found, attempts = await discover(
        source.api_version, configured=configured, remembered=remembered, budget=budget
    )
    if found is None:
        tried = "; ".join(f"{one.candidate.url}: {one.verdict}" for one in attempts)
        asked = f"{NOT_FOUND[0].upper()}{NOT_FOUND[1:]}"
        return SourceProblem("unreachable", f"{asked} Tried {tried.rstrip('.')}.")
    if (found.url, found.origin) != (status.endpoint, status.origin):
        log.info("endpoint.found", extra={"url": found.url, "origin": found.origin})
    status.endpoint, status.origin = found.url, found.origin
    if configured is None and found.url != remembered:
        await journal.run(lambda store: store.remember(endpoint=found.url))
    return found.url
