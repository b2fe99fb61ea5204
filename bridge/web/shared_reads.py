"""Equal reads of the journal that wait at the same time are done once, for all who asked.

Many consoles ask the same whenever something happens, and polls wait for the journal too.
"""

import asyncio
import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bridge.journal import Journal
from bridge.journal.store import Store


@dataclass(slots=True)
class SharedReads:
    """The reads that wait for the journal, each under a name for what it reads."""

    done: int = 0
    _waiting: dict[Hashable, asyncio.Task[bytes]] = field(default_factory=dict)

    async def answer(
        self, journal: Journal, what: Hashable, read: Callable[[Store], Any]
    ) -> web.Response:
        """What *read* returns, as JSON.

        A read that has begun is not shared: it may have missed what the caller knows already.
        """
        task = self._waiting.get(what)
        if task is None:
            task = asyncio.create_task(self._encoded(journal, what, read), name="shared read")
            task.add_done_callback(_retrieve)
            self._waiting[what] = task
        return web.Response(body=await asyncio.shield(task), content_type="application/json")

    async def _encoded(
        self, journal: Journal, what: Hashable, read: Callable[[Store], Any]
    ) -> bytes:
        def begin(store: Store) -> Any:
            self._waiting.pop(what, None)
            return read(store)

        self.done += 1
        try:
            found = await journal.run(begin)
        finally:
            if self._waiting.get(what) is asyncio.current_task():
                del self._waiting[what]
        return json.dumps(found).encode()


def _retrieve(task: asyncio.Task[bytes]) -> None:
    """Those who wait get the exception; they may have left."""
    if not task.cancelled():
        task.exception()
