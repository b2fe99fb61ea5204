"""What a bridge waits for: operations of its journal, and requests to Azure.

The bridge runs the real code. Each time it waits, the explorer decides who continues.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from support.bridge import Choose

from bridge.core.model import Instance
from bridge.journal import Journal
from bridge.journal.schema import migrate
from bridge.journal.store import Store
from bridge.metadata.answers import WITHDRAWN

T = TypeVar("T")


class Wait:
    """Something that a bridge waits for; the explorer sends the result."""

    def __await__(self) -> Generator["Wait", Any, Any]:
        return (yield self)


@dataclass(frozen=True)
class Operation(Wait):
    """An operation of the journal: it reads, or commits one transaction."""

    call: Callable[[], Any]
    commits: bool


@dataclass(frozen=True)
class Fetch(Wait):
    """A request for the document."""


@dataclass(frozen=True)
class Post(Wait):
    """A StartRequest that has left the bridge."""

    ids: tuple[str, ...]


class SteppedJournal(Journal):
    """The real journal, except that every operation waits for the explorer."""

    def __init__(self) -> None:
        super().__init__(Path("model"))
        self.woken, self._commits = True, False

    def copied(self) -> "SteppedJournal":
        made = SteppedJournal()
        made.woken = self.woken
        return made

    def use(self, store: Store) -> None:
        self._store = store

    def announce(self) -> None:
        self.woken = True

    async def durably(self, operation: Callable[[Store], T]) -> T:
        self._commits = True
        return await super().durably(operation)

    async def _news(self, operation: Callable[[Store], T]) -> T:
        self._commits = True
        return await super()._news(operation)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        commits, self._commits = self._commits, False
        found: T = await Operation(call, commits)
        return found


@dataclass(frozen=True)
class Window:
    """Azure as one VM sees it: its name is known, and all else waits for the explorer."""

    vm: str

    async def instance(self) -> Instance:
        return Instance(name=self.vm, vm_id=self.vm)

    async def fetch(self) -> Any:
        return await Fetch()

    async def approve(self, choose: Choose, _: object) -> Any:
        ids = await choose()  # type: ignore[call-arg]  # the endpoint has given the incarnation
        return await Post(tuple(ids)) if ids else WITHDRAWN


class Turnstile(asyncio.AbstractEventLoop):
    """As much of an event loop as a lock needs. The explorer resumes whoever it lets in."""

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def get_debug(self) -> bool:
        return False

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]  # any call
        """Drop it: what follows a commit of votes only counts, logs and shows."""


LOOP = Turnstile()  # type: ignore[abstract]  # a lock needs no more of it


def empty(born: str) -> bytes:
    """The image of a new journal. Small pages make it quick to copy."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("PRAGMA page_size = 512")
    migrate(db)
    db.execute("UPDATE meta SET value = ? WHERE name = 'born'", (born,))
    image = db.serialize()
    db.close()
    return image


_DECIDES = (
    "SELECT * FROM meta WHERE name NOT IN ('last_good', 'born')",
    "SELECT * FROM tracked",
    "SELECT key, life FROM ended",
    """SELECT event, life, approver, resource, json_remove(vote.body, '$.about'), announced.body
    FROM vote JOIN announced ON announced.id = json_extract(vote.body, '$.about')""",
    "SELECT event, body FROM early ORDER BY id",
    "SELECT hex(key), event FROM message_key ORDER BY 1, 2",
    "SELECT event, life, state FROM grants",
    "SELECT * FROM drill",
    "SELECT id FROM outbox ORDER BY id",
)
"""Everything in a journal that a decision can depend on."""


def fingerprint(db: sqlite3.Connection) -> bytes:
    """Equal for journals that no decision can tell apart."""
    found = [db.execute(sql).fetchall() for sql in _DECIDES]
    return blake2b(repr(found).encode(), digest_size=16).digest()
