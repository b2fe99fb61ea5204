"""Messages that arrive together: the same result as one at a time, in one transaction."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridge import Bridge, event_id, group, make_config, make_runtime, plan
from support.clock import StillClock
from support.journal_tools import statements
from support.signing import Signer

from bridge.approvals import listeners
from bridge.core.model import ScheduledEvent
from bridge.core.state import State, Tracked
from bridge.journal import Journal
from bridge.plugins import Delivery

KNOWN, WAITED_FOR = ("A", "B"), "C"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {"eventId": st.sampled_from([*KNOWN, WAITED_FOR])},
        optional={
            "decision": st.sampled_from(["approve", "hold", "release"]),
            "approver": st.sampled_from(["orders", "billing", "stock"]),
            "resource": st.sampled_from(["vm-0", "vm-1", "vm-9"]),
            "id": st.sampled_from(["1", "2", "3", "4"]),
            "seen": st.just("0" * 64),
        },
    ),
    st.fixed_dictionaries({"StartRequests": st.just([{"EventId": "A"}, {"EventId": "B"}])}),
    st.sampled_from([{}, {"eventId": "A", "decision": "maybe"}, {"eventId": "A", "Decision": "hold"}]),
)  # fmt: skip
SENDERS = st.sampled_from([None, None, "orders", "billing"])


class Silent:
    """An Azure that nobody asks."""

    async def approve(self, *_: Any) -> Any:
        raise AssertionError


async def outcome_of(batches: Sequence[Sequence[Delivery]]) -> Any:
    """What the journal has after these batches, and what was counted."""
    with tempfile.TemporaryDirectory() as name:
        folder, clock = Path(name), StillClock()
        clock.moment = NOON
        journal = Journal(folder / "journal.db")
        await journal.open()
        config = make_config(folder, "http://127.0.0.1:9", {}, require="each-resource")
        runtime = await make_runtime(config, journal, clock)
        await journal.commit(State(tracked={key: tracked(key) for key in KNOWN}), [], 0.0)
        bridge = Bridge(runtime, Silent())  # type: ignore[arg-type]
        for batch in batches:
            taken = 0
            while taken < len(batch):
                taken += await bridge.intake.take_some(batch[taken:], "bus")
        await asyncio.sleep(0)
        found = await journal.run(content)
        await journal.close()
        return found, dict(runtime.status.approvals)


def tracked(key: str) -> Tracked:
    due = NOON + timedelta(hours=1)
    event = ScheduledEvent(key, "Reboot", "Scheduled", ("vm-0", "vm-1"), due)
    return Tracked(event, life=1, announced=True, affected=True, since=NOON - timedelta(hours=1))


TABLES = {
    "vote": "event, life, approver, resource, body",
    "early": "event, body",
    "message_key": "key, event, verified",
    "grants": "event, life, state",
    "checkpoint": "source, name, value",
    "outbox": "id, type, key, body",
    "space": "owner, bytes",
}


def content(store: Any) -> dict[str, list[Any]]:
    read = store.connection.execute
    return {
        table: read(f"SELECT {columns} FROM {table}").fetchall()
        for table, columns in TABLES.items()
    }


@given(st.lists(st.tuples(MESSAGES, SENDERS), max_size=12), st.sets(st.integers(0, 12)))
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_messages_taken_together_leave_the_same_as_one_at_a_time(said, cuts):
    made = [
        Delivery(
            json.dumps(body).encode(), identity=who, position=f"t/0/{number}", log="bus@c/t/0",
            checkpoint=("c/t/0", str(number + 1)),
        )
        for number, (body, who) in enumerate(said)
    ]  # fmt: skip
    places = sorted({0, len(made), *(cut for cut in cuts if cut < len(made))})
    batches = [made[first:last] for first, last in pairwise(places)]
    assert asyncio.run(outcome_of(batches)) == asyncio.run(outcome_of([[one] for one in made]))


async def test_two_hundred_votes_that_came_together_are_one_transaction(tmp_path):
    async with group(tmp_path) as made:
        plan(made, resources=["vm-0"], notice="3h")
        signers = [Signer(f"a-{number}", seed=number + 1) for number in range(20)]
        allow = [signer.entry() for signer in signers]
        bridge = await made.bridge(require={"count": 500}, allow=allow)
        said = [
            signers[number % 20].delivery(
                event_id(made), name=f"m-{number}", decision=("approve", "hold")[number // 20 % 2]
            )
            for number in range(200)
        ]
        with statements(bridge.journal) as ran:
            assert await bridge.intake.take_some(said, "bus", must_sign=True) == 200
        assert [sql for sql in ran if sql.startswith("COMMIT")] == ["COMMIT"]
        assert len(ran) < 200 * 25
        assert len(await bridge.told()) == 200


async def test_a_message_with_many_approvals_ends_the_transaction(tmp_path):
    async with group(tmp_path) as made:
        bridge = await made.bridge()
        many = json.dumps({"StartRequests": [{"EventId": f"E-{n}"} for n in range(100)]}).encode()
        assert await bridge.intake.take_some([Delivery(many)] * 9, "bus") < 9


async def test_a_source_that_failed_unexpectedly_is_read_one_message_at_a_time(tmp_path):
    """The one message that may be the cause then spoils no other."""
    async with group(tmp_path) as made:
        bridge = await made.bridge()
        status: Any = type("Status", (), {"state": "connected", "error": None})()
        listener = listeners.Listener("bus", None, bridge.runtime, bridge.intake, status)  # type: ignore[arg-type]
        listener.failed(ValueError("unforeseen"), 0.0)
        assert listener._alone == listeners.MOST
