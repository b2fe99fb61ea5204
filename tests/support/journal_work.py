"""How much SQLite does for the journal, counted rather than timed."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from bridge.journal.store import Store


@dataclass
class Work:
    """`steps` are instructions of SQLite's machine: each row that it reads takes a few of them."""

    steps: int = 0
    statements: int = 0
    written: int = 0


@contextmanager
def counted(store: Store) -> Generator[Work]:
    """Count statements, their steps, and the rows that they write."""
    work, db = Work(), store.connection
    before = db.total_changes

    def step() -> int:
        work.steps += 1
        return 0

    def statement(text: str) -> None:
        work.statements += not text.startswith("--")  # a comment names a trigger

    db.set_progress_handler(step, 1)
    db.set_trace_callback(statement)
    try:
        yield work
    finally:
        db.set_progress_handler(None, 1)
        db.set_trace_callback(None)
        work.written = db.total_changes - before
