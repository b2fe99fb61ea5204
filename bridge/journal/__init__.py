"""All durable state in one SQLite file: last document, outbox, cursors, votes, dead letters.

Read schema and store first, then cursors and votes, then journal.
"""

from bridge.journal.journal import Journal, SetAside
from bridge.journal.schema import Newer
from bridge.journal.store import Row, Settlement

__all__ = ["Journal", "Newer", "Row", "SetAside", "Settlement"]
