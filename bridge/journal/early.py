"""Approvals that wait for an event not seen yet, as the journal keeps them."""

import json
from datetime import UTC, datetime
from typing import Any

from bridge.journal.codec import moment
from bridge.journal.store import Store
from bridge.votes import Approval, Given


def early(store: Store) -> list[tuple[int, Given]]:
    """Approvals that still wait for their event, with their numbers, in the order of arrival."""
    rows = store.connection.execute("SELECT id, body FROM early ORDER BY id")
    return [(number, _read_given(json.loads(body))) for number, body in rows]


def early_one(store: Store, number: int) -> Given:
    sql = "SELECT body FROM early WHERE id = ?"
    return _read_given(json.loads(store.connection.execute(sql, (number,)).fetchone()[0]))


def waiting(store: Store) -> list[tuple[int, str, datetime]]:
    """The number, event and time of all that wait; what they say is not read for that."""
    rows = store.connection.execute("SELECT id, event, at FROM early ORDER BY id")
    return [(number, event, datetime.fromtimestamp(at, UTC)) for number, event, at in rows]


def _read_given(body: dict[str, Any]) -> Given:
    approval = Approval(**body.pop("approval"))
    at, signed_at = datetime.fromisoformat(body.pop("at")), body.pop("signed_at", None)
    return Given(approval, at=at, signed_at=moment(signed_at), **body)
