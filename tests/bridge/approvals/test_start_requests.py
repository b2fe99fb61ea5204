"""StartRequests: repeated until accepted, several in one request, and their results."""

import pytest
from support.bridge import deciding, event_id, grant_state, plan
from support.until import until

from bridge.common.errors import Unavailable
from bridge.journal.grants import granted
from bridge.metadata.answers import Accepted, SourceProblem

NOW = {"takeover_after": "0s"}


async def test_the_spelling_is_azures_own(two):
    plan(two, "low", event_id="abc-Def")
    bridge = await two.bridge()
    await bridge.hear("ABC-DEF")
    sent = []

    async def post(choose):
        sent.extend(await bridge.chosen(choose))
        return Accepted()

    bridge.azure.approve = post
    await bridge.consider()
    assert sent == ["abc-Def"]


async def test_a_due_start_request_fails_when_the_event_is_gone(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key, approver="orders")
    await bridge.consider()
    assert await grant_state(bridge, key) == "due"
    two.world.cancel("e")
    await bridge.poll()
    for _ in range(2):
        await bridge.consider()
    assert await bridge.became() == [("failed", None)]
    [told] = await bridge.told()
    assert (told["severitynumber"], told["data"]["reason"]) == (18, "expired")
    assert told["data"]["approver"] == "orders"


async def test_a_due_start_request_fails_when_the_event_starts_on_time(two):
    key = plan(two, "soon", notice="1s")
    bridge = await two.bridge()
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key)
    await bridge.consider()
    await until(lambda: two.world.find("soon").status == "Started")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("failed", None)]


async def test_an_event_that_starts_early_was_approved_by_someone_else(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key)
    await bridge.consider()
    two.world.start("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.told() == []
    assert await grant_state(bridge, key) == "settled"


async def test_the_start_request_is_repeated_until_azure_accepts_it(two):
    two.world.fault("status", methods=["POST"], status=500, count=2)
    two.world.fault("status", methods=["POST"], status=429, count=1)
    bridge = await two.bridge()
    async with deciding(bridge):
        await bridge.hear(event_id(two))
        await until(lambda: any(post["released"] for post in two.posts()))
        await until(bridge.told)
    assert await bridge.became() == [("granted", None)]


async def test_an_answer_that_is_lost_is_asked_for_again_and_granted_once(two):
    plan(two, "slow", starts_after_approval="1h")
    two.world.fault("reset", methods=["POST"], count=1, processed=True)
    bridge = await two.bridge()
    async with deciding(bridge):
        await bridge.hear(event_id(two, "slow"))
        await until(bridge.told)
    assert await bridge.became() == [("granted", None)]


async def test_other_changes_do_not_shorten_the_wait_after_a_failure(two):
    bridge = await two.bridge()
    calls = []

    async def post(choose):
        calls.append(await bridge.chosen(choose))
        return SourceProblem("throttled", "Too often.", retry_after=5.0)

    bridge.azure.approve = post
    await bridge.hear(event_id(two))
    for _ in range(5):
        await bridge.consider()
    assert len(calls) == 1


async def test_a_hold_during_an_azure_outage_withdraws_the_start_request(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key, approver="a")
    await bridge.consider()
    await bridge.hear(key, approver="b", decision="hold")
    await bridge.consider()
    assert await grant_state(bridge, key) is None
    two.world.start("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("recorded", None)]


async def test_a_restart_between_vote_and_post_loses_nothing(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    again = await two.bridge()
    await again.consider()
    assert len(two.posts()) == 1
    assert await again.became() == [("granted", None)]


async def test_a_restart_between_post_and_mark_grants_once_under_the_same_id(two):
    key = plan(two, "slow", starts_after_approval="1h")
    bridge = await two.bridge()
    await bridge.hear(key)
    real = bridge.azure.approve

    async def dies(*given):
        assert isinstance(await real(*given), Accepted)
        raise RuntimeError("the process ends here")

    bridge.azure.approve = dies
    with pytest.raises(RuntimeError):
        await bridge.consider()
    assert await bridge.told() == []
    again = await two.bridge()
    for _ in range(2):
        await again.consider()
    assert [post["status"] for post in two.posts()] == [200, 200]
    [told] = await again.told()
    other = await two.bridge("vm-1", **NOW)
    await other.hear(key)
    await other.consider()
    assert [one["id"] for one in await other.told()] == [told["id"]]


async def test_while_the_journal_cannot_be_written_nothing_is_posted(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    bridge.journal._store.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(Unavailable):
        await bridge.consider()
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.journal.repair()
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_journal_failure_after_the_post_is_recovered_later(two):
    key = plan(two, "slow", starts_after_approval="1h")
    bridge = await two.bridge()
    await bridge.hear(key)
    real = bridge.azure.approve

    async def then_full(*given):
        answer = await real(*given)
        bridge.journal._store.connection.execute("PRAGMA query_only = ON")
        return answer

    bridge.azure.approve = then_full
    with pytest.raises(Unavailable):
        await bridge.consider()
    assert await bridge.journal.repair()
    bridge.azure.approve = real
    await bridge.consider()
    assert await bridge.became() == [("granted", None)]
    assert set(await bridge.journal.run(granted)) == {(key, 1)}


async def test_approvals_that_arrive_together_are_posted_together(two):
    keys = [event_id(two), plan(two, "f")]
    bridge = await two.bridge()
    for key in keys:
        await bridge.hear(key)
    await bridge.consider()
    [post] = two.posts()
    assert sorted(post["eventIds"]) == sorted(keys)
    assert await bridge.became() == [("granted", None)] * 2


def refuse(bridge, gone: str) -> list[list[str]]:
    """Let Azure refuse each request that names this event; return what it is sent."""
    sent: list[list[str]] = []

    async def post(choose):
        ids = await bridge.chosen(choose)
        sent.append(ids)
        if gone in ids:
            return SourceProblem("bad-request", "It is gone.", status=400)
        return Accepted()

    bridge.azure.approve = post
    return sent


async def test_one_refused_event_does_not_block_the_others(two):
    keys = [event_id(two), plan(two, "f")]
    bridge = await two.bridge()
    sent = refuse(bridge, keys[0])
    for key in keys:
        await bridge.hear(key)
    await bridge.consider()
    assert [sorted(ids) for ids in sent] == [sorted(keys), *([one] for one in sorted(keys))]
    assert [one["data"]["eventId"] for one in await bridge.told()] == [keys[1]]
    assert await grant_state(bridge, keys[0]) == "due"
    assert bridge.azure.rereads > 0


async def test_few_requests_find_the_one_event_that_azure_refuses_among_many(two):
    keys = [event_id(two), *(plan(two, f"f-{number}") for number in range(31))]
    bridge = await two.bridge()
    sent = refuse(bridge, keys[0])
    for key in keys:
        await bridge.hear(key)
    await bridge.consider()
    assert len(sent) == 1 + 2 * 5, "each half that contains it is halved again"
    assert len(await bridge.told("approval.granted")) == 31
    assert await grant_state(bridge, keys[0]) == "due"


@pytest.mark.parametrize(("status", "rereads"), [(400, 1), (404, 1), (429, 0), (500, 0), (None, 0)])
async def test_a_refusal_has_the_document_read_again_and_other_trouble_does_not(
    two, status, rereads
):
    bridge = await two.bridge()

    async def post(*_):
        return SourceProblem("some", "Trouble.", status=status, retry_after=5.0)

    bridge.azure.approve = post
    await bridge.hear(event_id(two))
    await bridge.consider()
    assert bridge.azure.rereads == rereads


async def test_a_start_request_refused_because_the_event_is_gone_is_published_as_failed(two):
    bridge = await two.bridge()
    two.world.fault("status", methods=["POST"], status=400)
    await bridge.hear(event_id(two))
    await bridge.consider()
    assert bridge.azure.rereads == 1
    two.world.cancel("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("failed", None)]
