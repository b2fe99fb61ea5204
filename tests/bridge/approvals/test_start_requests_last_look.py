"""The last look: what changes while a StartRequest waits decides whether it is sent."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from support.ballots import delivery
from support.bridge import cast_votes, event_id, grant_state, plan, reconfigure
from support.journal_tools import statements
from support.until import until

from bridge.common.errors import Unavailable
from bridge.metadata.answers import SourceProblem

BEING_TOLD = "Azure is being told"


@asynccontextmanager
async def while_it_waits(bridge):
    """The bridge has decided to notify Azure, and waits for the poll in flight."""
    async with bridge.endpoint.turn:
        deciding = asyncio.create_task(bridge.consider())
        await until(lambda: bridge.endpoint.turn._waiters or deciding.done())
        yield
    await deciding


@asynccontextmanager
async def polling(bridge):
    task = asyncio.create_task(bridge.poller.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def hold(bridge, key, who="uid 0"):
    [answer] = await bridge.intake.take_local(delivery(key, decision="hold"), "control", who)
    return answer


# --- what comes before the mark ------------------------------------------------------------------


async def test_a_hold_answered_during_a_slow_poll_stops_the_request(two):
    bridge = await two.bridge()
    key = event_id(two)
    async with polling(bridge):
        await until(lambda: bridge.runtime.status.source.polls >= 2)
        slow = two.world.fault("delay", methods=["GET"], delay="1s", count=1)
        bridge.endpoint.read_again()
        await until(lambda: slow.left == 0)
        await bridge.hear(key, approver="orders")
        deciding = asyncio.create_task(bridge.consider())
        await until(lambda: bridge.endpoint.turn._waiters)
        assert (await hold(bridge, key)).outcome == "recorded"
        await deciding
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None)]


async def test_a_hold_committed_before_the_mark_stops_the_request(two):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, approver="orders")
    async with while_it_waits(bridge):
        await hold(bridge, key)
    assert two.posts() == []
    await bridge.consider()
    assert await grant_state(bridge, key) is None


async def test_a_dry_run_that_begins_while_the_request_waits_stops_it(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    async with while_it_waits(bridge):
        reconfigure(bridge, dry_run=True)
    assert two.posts() == []


async def test_a_policy_that_becomes_stricter_while_the_request_waits_stops_it(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), approver="orders")
    async with while_it_waits(bridge):
        reconfigure(bridge, require={"count": 2})
    assert two.posts() == []


async def test_a_right_that_is_removed_while_the_request_waits_stops_it(two):
    bridge = await two.bridge(allow=[{"approver": "orders"}])
    await bridge.hear(event_id(two), approver="orders")
    async with while_it_waits(bridge):
        reconfigure(bridge, allow=[{"approver": "billing"}])
    assert two.posts() == []


@pytest.mark.parametrize(
    "change",
    [{"type": "Redeploy"}, {"resources": ["vm-0", "vm-1", "vm-2"]}, {"resources": ["vm-1"]}],
    ids=["harsher", "more VMs", "not ours"],
)
async def test_an_event_that_changes_while_the_request_waits_is_judged_anew(two, change):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    async with while_it_waits(bridge):
        two.world.update("e", **change)
        await bridge.poll()
    assert two.posts() == []


async def test_a_document_that_changes_for_the_better_does_not_delay_the_request(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    async with while_it_waits(bridge):
        plan(two, "another")
        two.world.update("e", type="Freeze")
        await bridge.poll()
    assert len(two.posts()) == 1


async def test_events_that_fail_the_last_look_drop_out_of_the_request(two):
    keys = [event_id(two), plan(two, "f")]
    bridge = await two.bridge()
    for key in keys:
        await bridge.hear(key, approver="orders")
    async with while_it_waits(bridge):
        await hold(bridge, keys[0])
    assert [post["eventIds"] for post in two.posts()] == [keys[1:]]
    assert [await grant_state(bridge, key) for key in keys] == [None, "granted"]


async def test_each_part_of_a_refused_request_gets_its_own_look(two):
    keys = sorted([event_id(two), plan(two, "f"), plan(two, "g")])
    two.world.fault("status", methods=["POST"], status=400, count=1)
    bridge = await two.bridge()
    for key in keys:
        await bridge.hear(key, approver="orders")
    real, answers = bridge.azure.approve, []

    async def then_held(*given):
        answers.append(await real(*given))
        if len(answers) == 1:
            await hold(bridge, keys[1])
        if len(answers) == 2:
            reconfigure(bridge, dry_run=True)
        return answers[-1]

    bridge.azure.approve = then_held
    await bridge.consider()
    assert [post["eventIds"] for post in two.posts() if post["status"] == 200] == [keys[:1]]


async def test_the_grant_carries_the_votes_of_the_last_look(two):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, approver="orders")
    async with while_it_waits(bridge):
        await bridge.hear(key, approver="billing", id="later")
        reconfigure(bridge, require={"count": 1}, allow=[])
        reconfigure(bridge, require="any")
    [told] = await bridge.told("approval.granted")
    assert told["data"]["votes"] == {"have": ["orders", "billing"], "missing": [], "holds": []}
    assert told["data"]["approvalId"] == "later"
    [post] = two.posts()
    assert told["data"]["postedAt"] <= post["at"]


# --- what comes after the mark -------------------------------------------------------------------


async def test_a_hold_after_the_mark_is_recorded_and_told_that_azure_is_being_told(two):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, approver="orders")
    real = bridge.azure.approve
    told = []

    async def held_on_the_way(*given):
        answer = await real(*given)
        assert await grant_state(bridge, key) == "asked"
        told.append(await hold(bridge, key))
        return answer

    bridge.azure.approve = held_on_the_way
    await bridge.consider()
    [answer] = told
    assert answer.outcome == "recorded"
    assert BEING_TOLD in answer.detail
    [recorded] = await bridge.told("approval.recorded")
    assert BEING_TOLD in recorded["data"]["detail"]
    [granted] = await bridge.told("approval.granted")
    assert granted["data"]["votes"]["holds"] == []
    assert [vote.decision for vote in await cast_votes(bridge, key)] == ["approve", "hold"]


@pytest.mark.parametrize("fault", [{"kind": "status", "status": 500}, {"kind": "reset"}])
async def test_a_hold_after_the_mark_stops_further_requests(two, fault):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault(fault.pop("kind"), methods=["POST"], **fault)
    await bridge.hear(key, approver="orders")
    real, requests = bridge.azure.approve, []

    async def held_on_the_way(*given):
        requests.append(await real(*given))
        await hold(bridge, key)
        return requests[-1]

    bridge.azure.approve = held_on_the_way
    await bridge.consider()
    two.world.clear_faults()
    bridge.clock.ahead += bridge.runtime.rules.takeover_after * 2
    for _ in range(2):
        await bridge.consider()
    assert len(requests) == 1
    assert [post for post in two.posts() if post["status"] == 200] == []
    assert await grant_state(bridge, key) is None


async def test_a_request_without_an_answer_stays_asked_and_a_refused_one_is_due_again(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("reset", methods=["POST"], count=1)
    await bridge.hear(key)
    await bridge.consider()
    assert await grant_state(bridge, key) == "asked"
    two.world.fault("status", methods=["POST"], status=500, count=1)
    bridge.clock.ahead += bridge.runtime.rules.takeover_after * 2
    await bridge.consider()
    assert await grant_state(bridge, key) == "due"


async def test_an_event_that_starts_on_time_after_a_request_without_an_answer_is_a_failure(two):
    bridge = await two.bridge()
    two.world.fault("reset", methods=["POST"])
    await bridge.hear(event_id(two))
    await bridge.consider()
    two.world.cancel("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("failed", None)]


# --- kills ---------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


async def killed_after_the_mark(two, key):
    """A bridge that ends between the mark and the request."""
    bridge = await two.bridge()
    await bridge.hear(key, approver="orders")

    async def dies(choose):
        await bridge.chosen(choose)
        raise Killed

    bridge.azure.approve = dies
    with pytest.raises(Killed):
        await bridge.consider()
    assert await grant_state(bridge, key) == "asked"


async def test_after_a_kill_behind_the_mark_the_request_is_judged_anew_and_sent(two):
    key = event_id(two)
    await killed_after_the_mark(two, key)
    assert two.posts() == []
    again = await two.bridge()
    await again.consider()
    assert len(two.posts()) == 1
    assert await again.became() == [("granted", None)]


async def test_after_a_kill_behind_the_mark_a_hold_stops_the_request(two):
    key = event_id(two)
    await killed_after_the_mark(two, key)
    again = await two.bridge()
    assert BEING_TOLD in (await hold(again, key)).detail
    await again.consider()
    assert two.posts() == []
    assert await grant_state(again, key) is None


@pytest.mark.parametrize("now", [{"dry_run": True}, {"require": {"count": 2}}])
async def test_after_a_kill_behind_the_mark_the_new_rules_decide(two, now):
    key = event_id(two)
    await killed_after_the_mark(two, key)
    again = await two.bridge(**now)
    await again.consider()
    assert two.posts() == []


async def test_a_mark_that_cannot_be_written_sends_nothing(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    with pytest.raises(Unavailable):
        async with while_it_waits(bridge):
            bridge.journal._store.connection.execute("PRAGMA query_only = ON")
    assert two.posts() == []


async def test_the_last_look_reads_what_is_pending_in_its_own_transaction(two):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, approver="orders")
    with statements(bridge.journal) as found:
        await bridge.consider()
    marked = next(place for place, sql in enumerate(found) if "'asked'" in sql and "INSERT" in sql)
    began = max(place for place, sql in enumerate(found[:marked]) if sql.startswith("BEGIN"))
    assert any("SELECT * FROM tracked" in sql for sql in found[began:marked])
    assert len(two.posts()) == 1


# --- what becomes due while the request waits ----------------------------------------------------


async def test_approvals_that_arrive_while_the_request_waits_leave_with_it(two):
    keys = [event_id(two), plan(two, "f"), plan(two, "g")]
    bridge = await two.bridge()
    await bridge.hear(keys[0])
    async with while_it_waits(bridge):
        for key in keys[1:]:
            await bridge.hear(key)
    [post] = two.posts()
    assert sorted(post["eventIds"]) == sorted(keys)
    await bridge.consider()
    assert len(two.posts()) == 1
    assert await bridge.became() == [("granted", None)] * 3


async def test_an_event_that_waits_after_a_failure_does_not_leave_with_another(two):
    bad, good = event_id(two), plan(two, "f")
    bridge = await two.bridge()
    sent: list[list[str]] = []

    async def post(choose):
        sent.append(await bridge.chosen(choose))
        return SourceProblem("throttled", "Later.", status=429, retry_after=60.0)

    bridge.azure.approve = post
    for key in (bad, good):
        await bridge.hear(key)
        await bridge.consider()
    assert sent == [[bad], [good]]


async def test_no_other_event_joins_the_halves_of_a_refused_request(two):
    keys = [event_id(two), plan(two, "f")]
    late = plan(two, "g")
    bridge = await two.bridge()
    sent: list[list[str]] = []

    async def post(choose):
        ids = await bridge.chosen(choose)
        if not sent:
            await bridge.hear(late)
        sent.append(sorted(ids))
        return SourceProblem("bad-request", "One is gone.", status=400)

    bridge.azure.approve = post
    for key in keys:
        await bridge.hear(key)
    await bridge.consider()
    assert sent == [sorted(keys), *([key] for key in sorted(keys))]
