"""What can happen next in a world: steps of the bridges and of Azure, messages, and accidents."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

from model.bridges import Act, Bridges, Told
from model.operations import Post
from model.process import Process
from model.world import GONE, STARTED, Azure, Inbox, Side, State, World

MOST_TASKS = 2
"""How many tasks of one bridge are under way at a time."""


class Step(NamedTuple):
    """A step, as a sentence.

    It is `ours` if a bridge takes it, and nothing has to go wrong first; `broke` is what it broke.
    """

    says: str
    after: State
    ours: bool = True
    broke: tuple[str, ...] = ()


class Steps:
    """All steps from a state."""

    def __init__(self, world: World) -> None:
        self.world, self.bridges = world, Bridges(world)

    def first(self) -> State:
        """The bridges have started, and have read the first document."""
        world, count = self.world, len(self.world.names)
        azure = Azure((0,) * count, (frozenset(),) * count)
        unread = tuple[Inbox, ...](cast("Inbox", "new") for _ in world.messages)
        sides = []
        for vm in world.vms:
            begun = self.bridges.started(vm, 0)
            read = self.bridges.settled(begun, world.document(azure), world.now(0))
            sides.append(Side(read, unread))
        limits = (world.crashes, world.failures, world.outages, world.repeats)
        return State(0, azure, tuple(sides), *limits)

    def after(self, state: State) -> Iterator[Step]:
        """All that can happen next.

        Bridges share nothing but Azure. So it makes no difference when a bridge in the middle of
        its work lets others go first: they wait until it is at rest, or waits for Azure.
        """
        working = [at for at, side in enumerate(state.sides) if self._is_working(side)]
        for at in working or range(len(state.sides)):
            process = self.bridges.processes[state.sides[at].process]
            yield from self._continues(state, at, process)
            if len(process.waits) < MOST_TASKS:
                yield from self._begins(state, at, process)
                yield from self._hears(state, at, process)
            yield from self._suffers(state, at)
        if not working:
            yield from self._of_azure(state)
            yield from self._passes(state)

    def _is_working(self, side: Side) -> bool:
        waits = self.bridges.processes[side.process].waits.values()
        return bool(waits) and not any(isinstance(one, Post) for one in waits)

    def _passes(self, state: State) -> Iterator[Step]:
        if state.time + 1 < len(self.world.moments):
            later = replace(state, time=state.time + 1)
            seconds = self.world.moments[later.time]
            yield Step(f"{seconds} seconds have passed since the start.", later, ours=False)

    def _step(
        self, says: str, state: State, at: int, act: Act, ours: bool = True, **changes: Any
    ) -> Step:
        """The bridge acts; *changes* are those of its side."""
        side, world = state.sides[at], self.world
        document, now = world.document(state.azure), world.now(state.time)
        number, broke = self.bridges.act(side.process, act, document, now, side.rules)
        side = replace(side, process=number, **changes)
        side = replace(side, inbox=self._taken(side))
        return Step(says, _with(state, at, side), ours, broke)

    def _taken(self, side: Side) -> tuple[Inbox, ...]:
        """A message is acknowledged when its task is done."""
        tasks = self.bridges.processes[side.process].waits
        return tuple(
            "taken" if inbox == "taking" and f"take {message.name}" not in tasks else inbox
            for message, inbox in zip(self.world.messages, side.inbox, strict=True)
        )

    # --- a bridge ----------------------------------------------------------------------------

    def _continues(self, state: State, at: int, process: Process) -> Iterator[Step]:
        vm = self.world.vms[at]
        for task, wait in process.waits.items():
            if isinstance(wait, Post):
                yield from self._asks(state, at, wait)
            elif wait is not None:
                yield self._step(f"{vm} continues to {task}.", state, at, Act("go", task))

    def _begins(self, state: State, at: int, process: Process) -> Iterator[Step]:
        vm, now = self.world.vms[at], self.world.now(state.time)
        outdated = not process.was_read or process.incarnation != state.azure.incarnation
        if "poll" not in process.waits and outdated:
            says = f"{vm} polls and gets document {state.azure.incarnation}."
            yield self._step(says, state, at, Act("begin", "poll"))
            if state.outages:
                less = replace(state, outages=state.outages - 1)
                says = f"{vm} polls, and Azure answers 500."
                yield self._step(says, less, at, Act("begin", "poll", fails=True), ours=False)
        due = process.woken or process.wakes_at <= now.timestamp()
        if "decide" not in process.waits and due:
            yield self._step(f"{vm} begins to decide.", state, at, Act("begin", "decide"))

    def _hears(self, state: State, at: int, process: Process) -> Iterator[Step]:
        side, vm = state.sides[at], self.world.vms[at]
        for message, inbox in zip(self.world.messages, side.inbox, strict=True):
            if message.at not in (None, vm) or not process.was_read:
                continue  # a listener waits for Azure's first answer
            if self._is_busy(process, message.channel) or not self._is_said(state, message.name):
                continue
            if inbox == "taking" or (inbox == "taken" and not (state.repeats and process.at_rest)):
                continue
            new = inbox == "new"
            task = f"take {message.name}{'' if new else ' again'}"
            less = replace(state, repeats=state.repeats - (not new))
            inboxes = self._inbox(side, message.name) if new else side.inbox
            says = f"{vm} receives {message.sentence}{'' if new else ' again'}."
            yield self._step(says, less, at, Act("begin", task), ours=new, inbox=inboxes)

    def _inbox(self, side: Side, name: str) -> tuple[Inbox, ...]:
        pairs = zip(self.world.messages, side.inbox, strict=True)
        return tuple("taking" if message.name == name else inbox for message, inbox in pairs)

    def _is_said(self, state: State, name: str) -> bool:
        """Its sender has seen the state that it is about."""
        message = self.world.message(name)
        if message.event not in self.world.names:
            return True
        stage = state.azure.stages[self.world.names.index(message.event)]
        return stage < 0 or stage >= message.saw

    def _is_busy(self, process: Process, channel: str) -> bool:
        """A listener takes one message after the other."""
        taking = [_message(task) for task in process.waits if task.startswith("take ")]
        return any(self.world.message(name).channel == channel for name in taking)

    def _suffers(self, state: State, at: int) -> Iterator[Step]:
        """A reload, or a crash; the first bridge stands for all of them in a reload."""
        side, vm = state.sides[at], self.world.vms[at]
        following = side.rules + 1
        if following < len(self.world.rules):
            says = f"{vm} reloads: {_written(self.world.rules[following])}."
            act = Act("configure", rules=following)
            yield self._step(says, state, at, act, ours=False, rules=following)
        if state.crashes:
            new = self.bridges.restarted(side.process, vm, side.rules)
            inbox: tuple[Inbox, ...] = tuple("new" if i == "taking" else i for i in side.inbox)
            fresh = replace(side, process=new, inbox=inbox, told="")
            less = replace(state, crashes=state.crashes - 1)
            yield Step(f"{vm} crashes and starts again.", _with(less, at, fresh), ours=False)

    # --- Azure -------------------------------------------------------------------------------

    def _asks(self, state: State, at: int, post: Post) -> Iterator[Step]:
        """What becomes of a StartRequest that is on its way."""
        side, vm, names = state.sides[at], self.world.vms[at], " and ".join(post.ids)
        places = [self.world.names.index(one) for one in post.ids]

        def answered(says: str, told: Told, before: State, ours: bool = True) -> Step:
            return self._step(says, before, at, Act("feed", "decide", told), ours=ours, told="")

        if side.told == "accepted":
            yield answered(f"{vm} learns that Azure accepted {names}.", "accepted", state)
        elif any(state.azure.stages[place] == GONE for place in places):
            yield answered(f"Azure answers 400 to {vm}: {names} is gone.", "gone", state)
        else:
            azure = _accepted(state.azure, places, vm)
            after = replace(_with(state, at, replace(side, told="accepted")), azure=azure)
            yield Step(f"Azure accepts the StartRequest of {vm} for {names}.", after)
        if state.failures:
            less = replace(state, failures=state.failures - 1)
            yield answered(f"{vm} gets no answer to its StartRequest.", "lost", less, ours=False)
            if not side.told:
                says = f"Azure answers 500 to the StartRequest of {vm}."
                yield answered(says, "error", less, ours=False)

    def _of_azure(self, state: State) -> Iterator[Step]:
        now, azure = self.world.now(state.time), state.azure
        for place, (name, stage) in enumerate(zip(self.world.names, azure.stages, strict=True)):
            if stage < 0:
                continue
            states = self.world.events[name]
            due = states[stage].not_before
            if stage + 1 < len(states):
                new = states[stage + 1]
                says = f"Azure changes {name} to a {new.event_type} of {', '.join(new.resources)}."
                yield Step(says, _staged(state, place, stage + 1), ours=False)
            elif azure.accepted[place] or (due is not None and now >= due):
                yield Step(f"Azure starts {name}.", _staged(state, place, STARTED), ours=False)
            if self.world.vanishes:
                yield Step(f"Azure withdraws {name}.", _staged(state, place, GONE), ours=False)


def _with(state: State, at: int, side: Side) -> State:
    sides = list(state.sides)
    sides[at] = side
    return replace(state, sides=tuple(sides))


def _staged(state: State, place: int, stage: int) -> State:
    stages = list(state.azure.stages)
    stages[place] = stage
    azure = replace(state.azure, stages=tuple(stages), incarnation=state.azure.incarnation + 1)
    return replace(state, azure=azure)


def _accepted(azure: Azure, places: list[int], vm: str) -> Azure:
    accepted = tuple(
        one | {vm} if place in places else one for place, one in enumerate(azure.accepted)
    )
    return replace(azure, accepted=accepted)


def _message(task: str) -> str:
    return task.split()[1] if task.startswith("take ") else ""


def _written(rules: Any) -> str:
    return ", ".join(f"{name} is {value}" for name, value in rules.items())
