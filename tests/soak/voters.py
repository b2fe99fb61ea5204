"""Plays the stories: announces scheduled events, and votes on them as their plots say.

A vote is sent until its transport has confirmed it. It names the state that it is about, and is sent
once all bridges that it concerns know that state, so that none of them has a reason to refuse it.
"""

import asyncio
import contextlib
import itertools
import random
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from soak.channels import UNCONFIRMED, Channels, Send
from soak.ledger import Told
from soak.program import VMS, Story
from soak.stage import Stage

from bridge.core.ids import digest
from bridge.simulator.world.rules import Refused

Json = dict[str, Any]
LONG = {"notice": "1h", "started_for": "2s"}
UNKNOWN = (OSError, sqlite3.Error, KeyError)


@dataclass
class Sent:
    """A vote that its transport has confirmed, for as long as its event is open."""

    channel: str
    event: str
    send: Send


@dataclass
class Voters:
    """Everyone who votes in a soak."""

    stage: Stage
    sent: list[Sent] = field(default_factory=list)
    stories: list["asyncio.Task[None]"] = field(default_factory=list)
    _numbers: itertools.count = field(default_factory=itertools.count)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._channels = Channels(self.stage)
        self.stage.notice_loss.append(self._repeat)

    def _repeat(self, channel: str) -> None:
        """Send again, under the same ids, what may have been lost on this channel."""
        open_now = set(self.stage.world.entries)
        for one in self.sent:
            if one.channel == channel and one.event in open_now:
                task = asyncio.create_task(self._until_confirmed(one))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def repeated(self) -> None:
        """Return when nothing is being sent again."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- sending -----------------------------------------------------------------------------

    async def vote(
        self, event: str, vm: str, state: str, channel: str, *, copies: int = 1, **more: Any
    ) -> None:
        """Cast it, and remember it once it is confirmed."""
        how = {name: more.pop(name) for name in ("forged", "refusable") if name in more}
        said = {"eventId": event, "decision": "approve", **more}
        said |= {name: text for name, text in (("resource", vm), ("seen", state)) if text}
        name = f"vote-{next(self._numbers)}"
        one = Sent(channel, event, self._channels.message(channel, said, name, **how))
        for _ in range(copies):
            await self._until_confirmed(one)
        self.sent.append(one)

    async def _until_confirmed(self, one: Sent) -> None:
        while one.event in self.stage.world.entries:
            try:
                async with asyncio.timeout(8):
                    await one.send()
                return
            except UNCONFIRMED:
                await asyncio.sleep(0.3)

    # --- waiting -----------------------------------------------------------------------------

    def _state(self, event: str) -> str:
        return digest(self.stage.world.entries[event].event)

    async def known(self, event: str) -> str:
        """The event's present state, once the bridges of all its VMs have recorded it."""
        while event in self.stage.world.entries:
            state = self._state(event)
            vms = self.stage.world.entries[event].event.resources
            if all(self._knows(vm, event, state) for vm in vms):
                return state
            await asyncio.sleep(0.25)
        raise Refused("the event is over")

    def _knows(self, vm: str, event: str, state: str) -> bool:
        with contextlib.suppress(*UNKNOWN):
            tracked = self.stage.bridges[vm].about(event)["event"]
            return tracked is not None and tracked["past"][-1]["digest"] == state
        return False

    async def held(self, event: str) -> None:
        """Return once all bridges of the event know of the hold."""
        vms = self.stage.world.entries[event].event.resources
        while not all(self._holds(vm, event) for vm in vms):
            await asyncio.sleep(0.25)

    def _holds(self, vm: str, event: str) -> bool:
        with contextlib.suppress(*UNKNOWN):
            votes = self.stage.bridges[vm].about(event)["votes"]
            return any(vote["decision"] == "hold" for vote in votes)
        return False

    async def over(self, event: str) -> None:
        while event in self.stage.world.entries:
            await asyncio.sleep(0.1)

    # --- the plots ---------------------------------------------------------------------------

    async def play(self, story: Story) -> None:
        """One story, to its end."""
        plot = getattr(self, f"_{story.plot.replace('-', '_')}")
        told = self._announce(story)
        try:
            await plot(story, told, random.Random(story.name))
        except Refused as error:
            told.problem = str(error)
        await self.over(told.event)
        told.finished = True

    def _announce(self, story: Story) -> Told:
        keys: Json = {**LONG}
        if story.plot == "passes":
            keys = {"notice": f"{2 + hash_of(story.name) % 5}s", "started_for": "2s"}
        elif story.plot == "late":
            keys = {"notice": "3s", "started_for": "4s"}
        elif story.plot == "failure":
            keys = {"status": "Started", "started_for": "3s"}
        entry = self.stage.world.create(
            name=story.name, type=story.event_type, resources=list(story.resources), **keys
        )
        told = Told(story.name, story.plot, entry.event.key, list(story.resources), "never")
        self.stage.ledger.stories.append(told)
        return told

    def _expect(self, told: Told) -> None:
        told.expected, told.since = "granted", self.stage.now()

    async def _everyone(self, story: Story, told: Told, state: str, dice: random.Random) -> None:
        vms = list(self.stage.world.find(told.event).event.resources)
        dice.shuffle(vms)
        for vm in vms:
            copies = dice.choice([1, 1, 2])
            await self.vote(told.event, vm, state, story.channel, copies=copies)

    async def _approved(self, story: Story, told: Told, dice: random.Random) -> None:
        state = await self.known(told.event)
        told.expected = "any"
        await self._everyone(story, told, state, dice)
        self._expect(told)

    async def _drained(self, story: Story, told: Told, dice: random.Random) -> None:
        """The command sink votes."""
        told.expected = "any"
        await self.known(told.event)
        self._expect(told)

    async def _worsens(self, story: Story, told: Told, dice: random.Random) -> None:
        """Votes about the state before it count no more; votes about the state after it do."""
        before = await self.known(told.event)
        told.expected = "any"
        alone = len(story.resources) == 1
        if not alone:
            await self.vote(told.event, story.resources[0], before, story.channel)
        self._worsen(story)
        if alone or dice.random() < 0.5:
            await self.known(told.event)
        last = story.resources[-1]
        await self.vote(told.event, last, before, story.channel, refusable=True)
        state = await self.known(told.event)
        await self._everyone(story, told, state, dice)
        self._expect(told)

    def _worsen(self, story: Story) -> None:
        world, worse = self.stage.world, story.worse
        if worse == "resource" and len(story.resources) > 1 and len(story.resources) < len(VMS):
            more = next(vm for vm in VMS if vm not in story.resources)
            world.update(story.name, resources=[*story.resources, more])
        elif worse == "earlier":
            world.reschedule(story.name, "40m")
        else:
            world.update(story.name, type="Redeploy")

    async def _hold(self, told: Told, decision: str) -> None:
        who = "night-shift"
        await self.vote(told.event, "", "", "kafka", approver=who, decision=decision)

    async def _held(self, story: Story, told: Told, dice: random.Random) -> None:
        state = await self.known(told.event)
        await self._hold(told, "hold")
        await self.held(told.event)
        await self._everyone(story, told, state, dice)
        await asyncio.sleep(dice.uniform(4, 8))
        self.stage.world.cancel(told.event)

    async def _held_and_released(self, story: Story, told: Told, dice: random.Random) -> None:
        state = await self.known(told.event)
        await self._hold(told, "hold")
        await self.held(told.event)
        await self._everyone(story, told, state, dice)
        await asyncio.sleep(dice.uniform(2, 6))
        self._expect(told)
        await self._hold(told, "release")

    async def _partial(self, story: Story, told: Told, dice: random.Random) -> None:
        state = await self.known(told.event)
        for vm in story.resources[1:]:
            await self.vote(told.event, vm, state, story.channel)
        await asyncio.sleep(dice.uniform(4, 8))
        self.stage.world.cancel(told.event)

    async def _forged(self, story: Story, told: Told, dice: random.Random) -> None:
        state = await self.known(told.event)
        for vm in story.resources:
            name = dice.choice(["mallory", "plant", "ops"])
            await self.vote(told.event, vm, state, "kafka", approver=name)
            await self.vote(told.event, vm, state, "mqtt", forged=True)
        await asyncio.sleep(dice.uniform(3, 6))
        self.stage.world.cancel(told.event)

    async def _late(self, story: Story, told: Told, dice: random.Random) -> None:
        while self.stage.world.entries[told.event].status != "Started":
            await asyncio.sleep(0.1)
        state = self._state(told.event)
        for vm in story.resources:
            await self.vote(told.event, vm, state, story.channel, refusable=True)

    async def _passes(self, story: Story, told: Told, dice: random.Random) -> None:
        """Nobody votes."""

    async def _failure(self, story: Story, told: Told, dice: random.Random) -> None:
        """Nobody can vote: it has started."""

    async def _canceled(self, story: Story, told: Told, dice: random.Random) -> None:
        await asyncio.sleep(dice.uniform(1, 6))
        self.stage.world.cancel(told.event)

    async def _rewritten(self, story: Story, told: Told, dice: random.Random) -> None:
        for number in range(3):
            await asyncio.sleep(dice.uniform(0.5, 2))
            self.stage.world.update(told.event, description=f"Version {number} of {story.name}")
        self.stage.world.reschedule(told.event, "2h")
        await asyncio.sleep(dice.uniform(1, 3))
        self.stage.world.cancel(told.event)


def hash_of(name: str) -> int:
    """The same in every process."""
    return sum(name.encode())
