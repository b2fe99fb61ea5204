"""Every attack on the intake, in the format of each channel: refused with its reason, harmlessly."""

import asyncio
import json

import pytest
from support.attacks import ATTACKS, BILLING, ORDERS, RULES, Message, signed
from support.bridge import group

from bridge.approvals.intake import Unauthorized
from bridge.journal.votes import votes
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE, MalformedApproval


def in_headers(found: Message) -> Delivery:
    """As Kafka and MQTT 5 carry it."""
    return Delivery(found.body, [(name, value.encode()) for name, value in found.headers])


def in_the_body(found: Message) -> Delivery:
    """As MQTT 3.1.1 carries it; what is not signed has nothing to be wrapped in."""
    return Delivery(found.wrapped() if found.headers else found.body)


class AttackedBridge:
    """One bridge for all attacks of a channel: each leaves it unchanged."""

    def __init__(self, bridge, made, event_id):
        self.bridge, self.made, self.event_id = bridge, made, event_id

    async def cast(self):
        key = self.event_id.upper()
        return await self.bridge.journal.run(lambda store: votes(store, key, 1))

    async def told(self):
        return [one["data"] for one in await self.bridge.told("approval.refused")]


@pytest.fixture
async def attacked(tmp_path):
    async with group(tmp_path, "vm-0") as made:
        event_id = made.world.create(name="e", type="Reboot", notice="1h").event.event_id
        bridge = await made.bridge(**RULES, answer_strays=True)
        found = AttackedBridge(bridge, made, event_id)
        await bridge.intake.take(in_headers(signed(BILLING, event_id, "b")), "bus", must_sign=True)
        yield found


async def unharmed(attacked):
    """Azure got nothing, only billing's vote counts, and a valid vote is still accepted."""
    await attacked.bridge.consider()
    assert attacked.made.posts() == []
    assert [vote.approver for vote in await attacked.cast()] == ["billing"]
    good = in_headers(signed(ORDERS, attacked.event_id, "good"))
    await attacked.bridge.intake.take(good, "bus", must_sign=True)
    await attacked.bridge.consider()
    assert len(attacked.made.posts()) == 1


@pytest.mark.parametrize("carry", [in_headers, in_the_body])
async def test_on_a_bus_every_attack_is_refused_with_its_reason(attacked, carry):
    for attack in ATTACKS:
        if attack.headers and carry is in_the_body:
            continue
        before = len(await attacked.told())
        await attacked.bridge.intake.take(
            carry(attack.make(attacked.event_id)), "bus", must_sign=True
        )
        [refused] = (await attacked.told())[before:]
        assert refused["reason"] == attack.reason, attack.name
        assert attack.says in refused["detail"], attack.name
        assert len(await attacked.cast()) == 1, attack.name
    await unharmed(attacked)


async def answered(attacked, message):
    """The answer to a local caller: unauthorized, malformed, or refused with a reason."""
    try:
        [outcome] = await attacked.bridge.intake.take_local(in_headers(message), "http", None)
    except Unauthorized as error:
        return "nobody", str(error)
    except MalformedApproval as error:
        return "malformed", str(error)
    assert outcome.outcome == "refused"
    return outcome.reason, outcome.detail


async def test_a_local_caller_is_refused_too(attacked):
    for attack in ATTACKS:
        reason, detail = await answered(attacked, attack.make(attacked.event_id))
        expected = "nobody" if attack.status == 401 else attack.local_reason or attack.reason
        assert reason == expected, attack.name
        assert attack.says in detail or attack.local_reason, attack.name
    await unharmed(attacked)


async def test_concurrent_attacks_are_refused_too(attacked):
    """The intake takes one message at a time."""
    take = attacked.bridge.intake.take
    crowd = [
        take(carry(attack.make(attacked.event_id)), "bus", must_sign=True)
        for attack in ATTACKS
        for carry in (in_headers, in_the_body)
        if not (attack.headers and carry is in_the_body)
    ]
    await asyncio.gather(*crowd)
    counts = attacked.bridge.runtime.status.approvals
    assert sum(count for (what, _), count in counts.items() if what != "recorded") == len(crowd)
    await unharmed(attacked)


async def test_an_unsigned_message_cannot_use_a_verified_name(attacked):
    """On a trusted channel, a name that others prove by signature needs a proof."""
    for name in ("orders", "billing", "Orders", "uid 0", "auto", "sink:pager", "\u043erders"):
        said = b'{"eventId": "%b", "approver": "%b"}' % (attacked.event_id.encode(), name.encode())
        await attacked.bridge.intake.take(Delivery(said), "bus")
    assert {one["reason"] for one in await attacked.told()} == {"unauthorized"}
    await unharmed(attacked)


async def test_an_attacker_cannot_use_up_the_ids_of_a_verified_name(tmp_path):
    """An attacker who guesses the next id and the source name of orders cannot block its votes."""
    async with group(tmp_path, "vm-0") as made:
        event_id = made.world.create(name="e", type="Reboot", notice="1h").event.event_id
        bridge = await made.bridge(allow=[ORDERS.entry(), {"approver": "helper"}], dry_run=True)
        named = {"specversion": "1.0", "id": "w-1", "source": "orders", "type": APPROVE}
        said = {"eventId": event_id, "approver": "helper", "decision": "hold"}
        await bridge.intake.take(Delivery(json.dumps({**named, "data": said}).encode()), "bus")
        await bridge.intake.take(in_headers(signed(ORDERS, event_id, "w-1")), "bus")
        cast = await bridge.journal.run(lambda store: votes(store, event_id.upper(), 1))
        assert [vote.approver for vote in cast] == ["helper", "orders"]
