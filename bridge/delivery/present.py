"""What rows change in the present state of scheduled events, for sinks that keep that state."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from bridge.core.cloudevent import TRANSITIONS, CloudEvent, PresentState
from bridge.core.ids import safe_id
from bridge.core.state import decode_tracked
from bridge.journal import Row
from bridge.journal.cursors import is_followed, is_replayed, latest_transition
from bridge.journal.store import Store

_ENDED = frozenset({"completed", "canceled"})
_SNAPSHOT = "source.snapshot"
_MOST_ENDS = 500
"""How many of the latest ends a snapshot repeats: the sink may have refused one of them."""


def with_present(
    store: Store, sink: str, rows: Sequence[Row], scope: Literal["own", "all"]
) -> list[CloudEvent]:
    """The CloudEvents of *rows*, each with what it changes in the present state.

    All in one reading of the journal, so that rows that go out together agree.
    """
    return [replace(row.event, present=tuple(_changed(store, sink, row, scope))) for row in rows]


def _changed(
    store: Store, sink: str, row: Row, scope: Literal["own", "all"]
) -> Iterator[PresentState]:
    kind = row.event.kind
    if kind not in TRANSITIONS and kind != _SNAPSHOT:
        return
    if is_replayed(store, sink, row.seq):
        return
    if kind == _SNAPSHOT:
        if not is_followed(store, row.seq, [_SNAPSHOT]):
            yield from _all_pending(store, scope)
            yield from _latest_ends(store)
        return
    if not is_followed(store, row.seq, TRANSITIONS, row.event.key):
        yield from _state(row.event, scope)


def _state(latest: CloudEvent, scope: Literal["own", "all"]) -> Iterator[PresentState]:
    """Nothing for a drill, and for one that the disk damaged: it fails at the sink."""
    try:
        data = latest.data
        drill, affected = data["drill"], data["observer"]["affected"]
    except (ValueError, LookupError, TypeError):
        return
    over = latest.kind in _ENDED or (scope == "own" and affected is False)
    if not drill:
        yield PresentState(latest.key, None if over else latest)


def _all_pending(store: Store, scope: Literal["own", "all"]) -> Iterator[PresentState]:
    """The journal may have deleted what it published long ago; then the sink has it already."""
    for key, body in store.connection.execute("SELECT key, body FROM tracked ORDER BY key"):
        latest = latest_transition(store, safe_id(key))
        if latest is not None and decode_tracked(body).announced:
            yield from _state(latest, scope)


def _latest_ends(store: Store) -> Iterator[PresentState]:
    sql = (
        "SELECT key FROM ended WHERE key NOT IN (SELECT key FROM tracked) ORDER BY at DESC LIMIT ?"
    )
    for (key,) in store.connection.execute(sql, (_MOST_ENDS,)):
        yield PresentState(safe_id(key), None)
