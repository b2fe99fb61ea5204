"""Random steps in random order: nothing is POSTed that policy and identity do not allow.

Everything they allow is POSTed while the event waits, or published as failed.
"""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from support.bridge import group
from support.clock import ShiftedClock
from support.signing import Signer

SIGNERS = {"orders": Signer("orders"), "billing": Signer("billing", seed=2, ed25519=False)}
FORGER = Signer("orders", seed=9)
VMS = ("vm-0", "vm-1")
POLICIES = ["any", "each-resource", {"count": 2}, {"approvers": ["orders", "billing"]}]
HOLD = timedelta(minutes=10)
STORIES, STEPS = 7, 30
WHAT = [
    *["vote"] * 10,
    *["announce"] * 2,
    "pretend",
    "worsen",
    "end",
    "azure",
    *["wait"] * 3,
    "restart",
]
CHOICES = {
    "what": WHAT,
    "name": ["a", "b"],
    "who": sorted(SIGNERS),
    "said": ["approve", "approve", "approve", "hold", "hold", "release"],
    "vm": VMS,
    "times": [1, 2],
    "how": ["unsigned", "forged", "another name"],
    "over": ["cancel", "start"],
    "answers": [True, True, False],
    "minutes": [1, 11, 11],
}


LONGEST_BACKOFF = timedelta(seconds=5)


class Expected:
    """The expected state of one scheduled event: the votes, and whether they are enough."""

    def __init__(self, policy):
        self.policy = policy
        self.votes = {}
        self.posted = self.was_due = False

    def hear(self, voter, what, now):
        """A later vote replaces the earlier one; an equal vote changes nothing."""
        said, at = self.votes.get(voter, (None, now))
        same = said == what and (what != "hold" or now < at + HOLD)
        if not same and not (what == "hold" and self.posted):
            self.votes[voter] = (what, now)

    def enough(self, now):
        if any(what == "hold" and now < at + HOLD for what, at in self.votes.values()):
            return False
        ready = [voter for voter, (what, _) in self.votes.items() if what == "approve"]
        if self.policy == "any":
            return bool(ready)
        if self.policy == "each-resource":
            return {vm for _, vm in ready} >= set(VMS)
        return {who for who, _ in ready} == set(SIGNERS)


class ModeledBridge:
    """One bridge that decides after each step, and an independent model of what it should do."""

    def __init__(self, made, policy):
        self.group, self.policy = made, policy
        self.events, self.titles, self.sent = {}, {}, []
        self.number, self.broken = 0, False
        self.clock = ShiftedClock()

    async def restart(self):
        allow = [signer.entry() for signer in SIGNERS.values()]
        self.bridge = await self.group.bridge(require=self.policy, allow=allow)
        self.bridge.runtime.clock = self.clock
        await self.look()

    async def look(self):
        """The bridge decides, and its StartRequests are the expected ones."""
        now = self.clock.now()
        for _, event in self.events.values():
            event.was_due |= not event.posted and event.enough(now)
        self.clock.ahead += LONGEST_BACKOFF
        await self.bridge.consider()
        posts = [post for post in self.group.posts() if post["status"] == 200]
        for key in (key for post in posts[len(self.sent) :] for key in post["eventIds"]):
            [event] = [event for known, event in self.events.values() if known == key]
            assert event.enough(now), f"{key} was POSTed, and should not have been"
            event.posted = True
        self.sent = posts
        for key, event in self.events.values():
            assert event.posted or self.broken or not event.enough(now), f"{key} was not POSTed"

    async def announce(self, name):
        if name in self.events:
            return
        self.number += 1
        self.titles[name] = f"{name}-{self.number}"
        made = self.group.world.create(
            name=self.titles[name], type="Freeze", notice="100h", resources=list(VMS),
            starts_after_approval="100h",
        )  # fmt: skip
        await self.bridge.poll()
        self.events[name] = (made.event.event_id, Expected(self.policy))
        await self.look()

    async def vote(self, name, who, what, vm, times):
        key, event = self.events[name]
        self.number += 1
        said = {"resource": vm} if self.policy == "each-resource" else {}
        ahead = min(self.clock.ahead.total_seconds(), 200)
        message = SIGNERS[who].delivery(
            key, name=f"w-{self.number}", age=-ahead, decision=what, **said
        )
        for _ in range(times):
            await self.bridge.intake.take(message, "bus", must_sign=True)
        event.hear((who, said.get("resource", "")), what, self.clock.now())
        await self.look()

    async def pretend(self, name, how):
        """Someone else votes as orders."""
        self.number += 1
        signer = {"forged": FORGER, "another name": SIGNERS["billing"]}.get(how, SIGNERS["orders"])
        message = signer.delivery(
            self.events[name][0], name=f"w-{self.number}", approver="orders", resource=VMS[0]
        )
        if how == "unsigned":
            message = replace(message, headers=[])
        await self.bridge.intake.take(message, "bus", must_sign=how != "unsigned")
        await self.look()

    async def worsen(self, name):
        if self.group.world.find(self.titles[name]).event.event_type != "Redeploy":
            self.group.world.update(self.titles[name], type="Redeploy")
            self.events[name][1].votes.clear()
        await self.bridge.poll()
        await self.look()

    async def end(self, name, how):
        key, event = self.events.pop(name)
        getattr(self.group.world, how)(self.titles[name])
        await self.bridge.poll()
        await self.bridge.consider()
        failed = {one["data"]["eventId"] for one in await self.bridge.told("approval.failed")}
        if how == "cancel" and event.enough(self.clock.now()) and not event.posted:
            assert key in failed, "what was due and never POSTed must be said"
        assert not (event.posted and key in failed)
        assert event.was_due or key not in failed

    async def azure(self, answers):
        self.group.world.clear_faults()
        self.broken = not answers
        if self.broken:
            self.group.world.fault("status", methods=["POST"], status=500)
        await self.look()

    async def wait(self, minutes):
        self.clock.ahead += timedelta(minutes=minutes)
        await self.look()

    async def do(self, step):
        arguments = {
            "vote": ("name", "who", "said", "vm", "times"),
            "announce": ("name",),
            "pretend": ("name", "how"),
            "worsen": ("name",),
            "end": ("name", "over"),
            "azure": ("answers",),
            "wait": ("minutes",),
            "restart": (),
        }[step["what"]]
        if "name" not in arguments or step["what"] == "announce" or step["name"] in self.events:
            await getattr(self, step["what"])(*(step[each] for each in arguments))


async def play(folder, policy, steps):
    async with group(folder, *VMS) as made:
        modeled = ModeledBridge(made, policy)
        await modeled.restart()
        for name in ("a", "b"):
            await modeled.announce(name)
        for step in steps:
            await modeled.do(step)
        return len(modeled.sent)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
async def test_azure_gets_everything_that_is_allowed_and_nothing_else(tmp_path, policy):
    told = 0
    for seed in range(STORIES):
        dice = random.Random(f"{policy} {seed}")
        steps = [{k: dice.choice(v) for k, v in CHOICES.items()} for _ in range(STEPS)]
        try:
            told += await play(tmp_path / f"{seed}", policy, steps)
        except AssertionError as error:
            error.add_note(f"story {seed}")
            raise
    assert told >= STORIES / 3, "a world in which nothing is ever granted proves nothing"
