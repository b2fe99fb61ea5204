"""Who a vote is from: valid and invalid signatures, tokens and names at a real intake."""

import json
import time
from dataclasses import replace

import pytest
from support.bridge import cast_votes, counted, event_id, reconfigure
from support.signing import Signer, wrapped

from bridge.approvals.publisher import MOST_REFUSALS
from bridge.common.signatures import Key
from bridge.journal.votes import seen
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE
from bridge.policy.votes import SINK

ORDERS = Signer("orders")
BILLING = Signer("billing", seed=2, ed25519=False)
STRANGER = Signer("orders", seed=3)
BOTH = [ORDERS.entry(), BILLING.entry()]


async def born_earlier(bridge, hours=24):
    """Make the journal look as if it had existed for a while."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - hours * 3600))
    await bridge.journal.run(lambda store: store.remember(born=text))


# --- signatures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [ORDERS, BILLING], ids=lambda who: who.key.version)
async def test_the_signer_is_the_approver(two, who):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(who.delivery(event_id(two)), "bus", must_sign=True)
    [vote] = await cast_votes(bridge, event_id(two))
    assert (vote.approver, vote.verified, vote.approval) == (who.approver, True, "w-1")
    assert vote.signed_at is not None
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_transport_without_headers_carries_the_signature_in_the_message(two):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(wrapped(ORDERS.delivery(event_id(two))), "bus", must_sign=True)
    [vote] = await cast_votes(bridge, event_id(two))
    assert (vote.approver, vote.verified) == ("orders", True)


async def test_a_structured_cloudevent_is_signed_as_a_whole(two):
    bridge = await two.bridge(allow=BOTH)
    envelope = {"specversion": "1.0", "id": "a-1", "source": "/o", "type": APPROVE}
    body = json.dumps({**envelope, "data": {"eventId": event_id(two)}}).encode()
    headers = [(k, v.encode()) for k, v in ORDERS.headers(body, "a-1").items()]
    typed = [*headers, ("content-type", b"application/cloudevents+json")]
    await bridge.intake.take(Delivery(body, typed), "bus", must_sign=True)
    [vote] = await cast_votes(bridge, event_id(two))
    assert vote.key == "/o\x1fa-1"
    other = [(k, v.encode()) for k, v in ORDERS.headers(body, "another").items()]
    await bridge.intake.take(Delivery(body, other), "bus", must_sign=True)
    assert counted(bridge, "refused", "malformed") == 1


def unsigned(made):
    return replace(ORDERS.delivery(event_id(made)), headers=[])


def tampered(made):
    return replace(
        ORDERS.delivery(event_id(made)), body=b'{"eventId":  "%b"}' % event_id(made).encode()
    )


def forged(made):
    return STRANGER.delivery(event_id(made))


@pytest.mark.parametrize("message", [unsigned, tampered, forged])
async def test_on_a_signed_channel_unsigned_messages_neither_count_nor_use_up_ids(two, message):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(message(two), "bus", must_sign=True)
    assert await bridge.became() == [("refused", "unauthorized")]
    assert await cast_votes(bridge, event_id(two)) == []
    await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus", must_sign=True)
    assert len(await cast_votes(bridge, event_id(two))) == 1, "a forger must not use up its id"
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_the_first_key_that_matches_ends_the_check(two, monkeypatch):
    checks = []
    made = Key.made

    def counting(key, signature, content):
        checks.append(key)
        return made(key, signature, content)

    monkeypatch.setattr(Key, "made", counting)
    bridge = await two.bridge(allow=[ORDERS.entry(), Signer("stock", seed=4).entry()])
    await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus", must_sign=True)
    assert len(checks) == 1
    await bridge.intake.take(STRANGER.delivery(event_id(two)), "bus", must_sign=True)
    assert len(checks) == 3


async def test_a_signer_cannot_vote_under_another_name(two):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(ORDERS.delivery(event_id(two), approver="billing"), "bus")
    assert await bridge.became() == [("refused", "unauthorized")]


async def test_headers_cannot_change_what_was_signed(two):
    bridge = await two.bridge(allow=BOTH)
    plain = ORDERS.delivery(event_id(two))
    binary = [("ce_specversion", b"1.0"), ("ce_id", b"w-1"), ("ce_source", b"/x")]
    dressed = replace(plain, headers=[*plain.headers, *binary, ("ce_type", APPROVE.encode())])
    await bridge.intake.take(dressed, "bus", must_sign=True)
    assert counted(bridge, "refused", "malformed") == 1
    assert await cast_votes(bridge, event_id(two)) == []


async def test_a_trusted_channel_still_verifies_signatures(two):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(forged(two), "bus")
    await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus")
    assert [vote.verified for vote in await cast_votes(bridge, event_id(two))] == [True]
    assert counted(bridge, "refused", "unauthorized") == 1


async def test_without_configured_keys_an_optional_signature_is_ignored(two):
    bridge = await two.bridge()
    await bridge.intake.take(forged(two), "bus")
    assert [vote.verified for vote in await cast_votes(bridge, event_id(two))] == [False]


async def test_the_refusals_of_strangers_do_not_fill_the_journal(two):
    bridge = await two.bridge(allow=BOTH)
    for number in range(MOST_REFUSALS + 5):
        await bridge.hear(event_id(two), approver="stranger", id=f"{number}")
    assert len(await bridge.told()) == MOST_REFUSALS
    assert counted(bridge, "refused", "unauthorized") == MOST_REFUSALS + 5


async def test_a_key_that_cannot_be_read_verifies_nothing_and_is_logged_once(two, tmp_path, caplog):
    entry = {"approver": "orders", "keys": [{"hmac": {"file": str(tmp_path / "absent")}}]}
    bridge = await two.bridge(allow=[entry, BILLING.entry()])
    for _ in range(2):
        await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus", must_sign=True)
    assert [record.message for record in caplog.records].count("approvals.key_unreadable") == 1
    await bridge.intake.take(BILLING.delivery(event_id(two)), "bus", must_sign=True)
    assert len(await cast_votes(bridge, event_id(two))) == 1


# --- freshness and replay ------------------------------------------------------------------------


async def test_a_signed_message_that_comes_again_elsewhere_changes_nothing(two):
    bridge = await two.bridge(allow=BOTH, dry_run=True)
    message = ORDERS.delivery(event_id(two))
    await bridge.intake.take(replace(message, position="t/0/1"), "bus", must_sign=True)
    hold = ORDERS.delivery(event_id(two), name="w-2", decision="hold")
    await bridge.intake.take(replace(hold, position="t/0/2"), "bus", must_sign=True)
    await bridge.intake.take(replace(message, position="t/0/3"), "bus", must_sign=True)
    await bridge.intake.take(message, "other", must_sign=True)
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["hold"]
    assert counted(bridge, "dropped", "duplicate") == 2


async def test_an_id_belongs_to_its_verified_sender(two):
    bridge = await two.bridge(allow=BOTH, dry_run=True)
    for who in (ORDERS, BILLING):
        await bridge.intake.take(who.delivery(event_id(two)), "bus", must_sign=True)
    assert {vote.approver for vote in await cast_votes(bridge, event_id(two))} == {
        "orders",
        "billing",
    }


@pytest.mark.parametrize(
    ("age", "outcome"), [(299, None), (290_000, "replayed"), (-400, "unauthorized")]
)
async def test_on_a_bus_a_vote_may_be_as_old_as_its_event(two, age, outcome):
    bridge = await two.bridge(allow=BOTH)
    await born_earlier(bridge, hours=1000)
    await bridge.intake.take(ORDERS.delivery(event_id(two), age=age), "bus", must_sign=True)
    expected = [] if outcome is None else [("refused", outcome)]
    assert await bridge.became() == expected


async def test_after_a_lost_journal_what_was_signed_earlier_does_not_count(two):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(ORDERS.delivery(event_id(two), age=5), "bus", must_sign=True)
    assert await bridge.became() == [("refused", "replayed")]
    await bridge.intake.take(ORDERS.delivery(event_id(two), name="w-2"), "bus", must_sign=True)
    assert len(await cast_votes(bridge, event_id(two))) == 1


async def test_an_early_vote_keeps_its_proof(two):
    bridge = await two.bridge(allow=BOTH, dry_run=True)
    key = two.world.event_id("soon")
    await bridge.intake.take(ORDERS.delivery(key), "bus", must_sign=True)
    await bridge.intake.take(
        replace(ORDERS.delivery(key, name="w-2"), headers=[]), "bus", must_sign=True
    )
    two.world.create(name="soon", type="Freeze", notice="1h")
    await bridge.poll()
    await bridge.consider()
    [vote] = await cast_votes(bridge, key)
    assert (vote.approver, vote.verified, vote.signed_at is not None) == ("orders", True, True)


async def test_an_older_signature_never_replaces_a_newer_one(two):
    bridge = await two.bridge(allow=BOTH, dry_run=True)
    await born_earlier(bridge)
    late = ORDERS.delivery(event_id(two), name="w-2", decision="hold", age=10)
    await bridge.intake.take(late, "bus", must_sign=True)
    await bridge.intake.take(ORDERS.delivery(event_id(two), age=20), "bus", must_sign=True)
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["hold"]
    assert counted(bridge, "dropped", "older") == 1


@pytest.mark.parametrize(
    ("said", "between", "stands"),
    [("hold", "approve", "hold"), ("hold", "release", "hold"), ("approve", "hold", "hold")],
)
async def test_a_signature_older_than_the_latest_vote_comes_too_late_unless_it_holds(
    two, said, between, stands
):
    bridge = await two.bridge(allow=BOTH, dry_run=True)
    await born_earlier(bridge)
    for name, age, decision in (("w-1", 30, said), ("w-2", 10, said), ("w-3", 20, between)):
        message = ORDERS.delivery(event_id(two), name=name, age=age, decision=decision)
        await bridge.intake.take(message, "bus", must_sign=True)
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == [stands]


async def test_keys_are_written_with_the_vote(two):
    bridge = await two.bridge(allow=BOTH)
    key = event_id(two)
    await bridge.intake.take(ORDERS.delivery(key), "bus", must_sign=True)
    assert await bridge.journal.run(lambda store: seen(store, "\x1forders\x1fw-1", key))


# --- names ---------------------------------------------------------------------------------------


async def test_a_verified_vote_cannot_be_replaced_by_an_unverified_one(two):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(event_id(two), approver="orders", _identity="orders", id="1")
    await bridge.hear(event_id(two), approver="orders", decision="hold", id="2")
    await bridge.hear(event_id(two), approver="orders", decision="release", resource="vm-1", id="3")
    found = {(vote.decision, vote.verified) for vote in await cast_votes(bridge, event_id(two))}
    assert found == {("approve", True), ("release", False)}
    assert ("refused", "unauthorized") in await bridge.became()


async def test_an_unverified_name_cannot_release_a_verified_hold(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), decision="hold", resource="vm-0", _identity="orders", id="1")
    await bridge.hear(event_id(two), decision="release", approver="orders", id="2")
    await bridge.hear(event_id(two), approver="other", id="3")
    await bridge.consider()
    assert two.posts() == []


async def test_an_event_has_only_so_many_votes_of_unverified_names(two, monkeypatch):
    monkeypatch.setattr("bridge.approvals.assessment.MOST_UNVERIFIED", 3)
    bridge = await two.bridge(dry_run=True)
    for number in range(5):
        await bridge.hear(event_id(two), approver=f"a-{number}")
    await bridge.hear(event_id(two), approver="a-0", decision="hold")
    await bridge.hear(event_id(two), _identity="verified", id="p")
    cast_now = await cast_votes(bridge, event_id(two))
    assert len(cast_now) == 4
    assert counted(bridge, "refused", "rate-limited") == 2


@pytest.mark.parametrize(
    ("require", "granted"),
    [({"count": 2}, True), ({"count": 3}, False), ({"approvers": ["orders", "billing"]}, True),
     ({"approvers": ["orders", "stock"]}, False)],
)  # fmt: skip
async def test_a_quorum_of_verified_names_is_granted(two, require, granted):
    bridge = await two.bridge(allow=BOTH, require=require)
    await bridge.hear(event_id(two), approver="somebody", id="x")
    for who in (ORDERS, BILLING):
        await bridge.intake.take(who.delivery(event_id(two)), "bus", must_sign=True)
        await bridge.consider()
    assert bool(two.posts()) is granted


async def test_with_all_resources_one_vote_counts_for_every_vm(two):
    entry = ORDERS.entry(all_resources=True)
    bridge = await two.bridge(allow=[entry, BILLING.entry()], require="each-resource")
    await bridge.intake.take(BILLING.delivery(event_id(two)), "bus")
    await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus")
    await bridge.consider()
    assert len(two.posts()) == 1
    assert await bridge.became() == [("refused", "resource-required"), ("granted", None)]


async def test_a_reload_that_removes_permissions_also_removes_existing_votes(two):
    bridge = await two.bridge(allow=BOTH)
    await bridge.intake.take(ORDERS.delivery(event_id(two)), "bus")
    for entries, posts in ((BOTH[1:], 0), (BOTH, 1)):
        reconfigure(bridge, allow=entries)
        await bridge.consider()
        assert len(two.posts()) == posts


async def test_a_sinks_vote_needs_no_entry_and_counts_as_verified(two):
    bridge = await two.bridge(allow=BOTH, require={"count": 1})
    body = json.dumps({"eventId": event_id(two), "resource": "vm-0", "id": "c-1"}).encode()
    for _ in range(2):
        await bridge.intake.take_local(Delivery(body), SINK, "sink:drain")
    [vote] = await cast_votes(bridge, event_id(two))
    assert (vote.approver, vote.verified, vote.local) == ("sink:drain", True, True)
