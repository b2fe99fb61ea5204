"""The bridges of a world: what each does when the explorer lets it take a step."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from model.invariants import Rules, post_problems, repeat_problems, rows_of
from model.operations import Fetch, Operation, Post, SteppedJournal, Window, empty
from model.process import Happened, Process, Running, Task, begun
from model.world import NOTICE, START, Message, World
from support.bridge import Bridge, make_config
from support.clock import StillClock

from bridge.core.model import Document, ScheduledEvent
from bridge.journal import drills
from bridge.metadata.answers import Accepted, Answer, SourceProblem
from bridge.policy.drill import Drill, tracked
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status

Told = Literal["", "accepted", "gone", "lost", "error"]
ANSWERS: dict[Told, Accepted | SourceProblem] = {
    "accepted": Accepted(),
    "gone": SourceProblem("bad-request", "The metadata service answered 400.", status=400),
    "lost": SourceProblem("timeout", "The metadata service did not answer in time."),
    "error": SourceProblem("server-error", "The metadata service answered 500.", status=500),
}


@dataclass(frozen=True)
class Act:
    """What a bridge does next: begin a task, go on with it, get an answer, or reload."""

    kind: Literal["begin", "go", "feed", "configure"]
    task: str = "configure"
    told: Told = ""
    fails: bool = False
    rules: int = 0


class Bridges:
    """All processes that the bridges of a world have ever been, by number; equal ones have one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.processes: list[Process] = []
        self._numbers: dict[bytes, int] = {}
        self._known: dict[tuple[object, ...], tuple[int, tuple[str, ...]]] = {}
        self._blank = empty(START.isoformat())
        folder = Path("model")
        self._configs = [
            make_config(folder, "http://127.0.0.1:9", {}, **one) for one in world.rules
        ]
        self._clock, self._status = StillClock(START), Status()
        self._tasks: dict[str, Callable[[Bridge], Task]] = {"poll": _poll, "decide": _decide}
        for message in world.messages:
            take = partial(_take, message=message, world=world)
            self._tasks |= {f"take {message.name}": take, f"take {message.name} again": take}

    def started(self, vm: str, rules: int, image: bytes | None = None) -> int:
        """A new process, on an empty journal unless there is one."""
        journal, config = SteppedJournal(), self._configs[rules]
        identity = Identity(config, journal)
        runtime = Runtime(config, journal, identity, self._status, "1.2.3", "boot-1", self._clock)
        made = Bridge(runtime, Window(vm))  # type: ignore[arg-type]  # the explorer answers
        prepare = partial(_start, drill=self.world.drill, vm=vm)
        return self._numbered(begun(made, image or self._blank, prepare, self.db))

    def restarted(self, number: int, vm: str, rules: int) -> int:
        """The process dies: only its journal remains, and a new one continues with it."""
        key = ("restart", number, rules)
        if key not in self._known:
            self._known[key] = self.started(vm, rules, self.processes[number].image), ()
        return self._known[key][0]

    def settled(self, number: int, document: Document, now: datetime) -> int:
        """The process has read the document and decided, undisturbed."""
        for task in ("poll", "decide"):
            number, _ = self.act(number, Act("begin", task), document, now, 0)
            while task in self.processes[number].waits:
                number, _ = self.act(number, Act("go", task), document, now, 0)
        return number

    def act(
        self, number: int, act: Act, document: Document, now: datetime, rules: int
    ) -> tuple[int, tuple[str, ...]]:
        """The process after its next act, and what the act broke; each is tried once."""
        shown = tuple((one.event_id, one.event_type, one.status) for one in document.events)
        key = (number, act, document.incarnation, shown, now)
        if key not in self._known:
            self._known[key] = self._act(self.processes[number], act, document, now, rules)
        return self._known[key]

    def _act(
        self, process: Process, act: Act, document: Document, now: datetime, rules: int
    ) -> tuple[int, tuple[str, ...]]:
        running = Running(process, self._tasks, self.db)
        problems: list[str] = []
        if act.kind == "configure":
            config = self._configs[act.rules]
            running.happen(Happened(now, "configure", config=config))
            running.trail.pop("configure")
        elif act.kind == "begin":
            running.happen(Happened(now, act.task, begins=True))
        elif act.kind == "feed":
            running.happen(Happened(now, act.task, result=ANSWERS.get(act.told)))
        elif isinstance(running.waits_for(act.task), Operation):
            problems += self._operate(running, act.task, now)
        problems += self._run(running, act, document, now)
        if isinstance(running.waits_for("decide"), Post) and act.task == "decide":
            post, in_force = running.waits_for("decide"), Rules.of(self.world.rules[rules])
            problems += post_problems(self.world, self.db, running.bridge, post.ids, in_force, now)
        return self._numbered(running.stopped()), tuple(problems)

    def _run(self, running: Running, act: Act, document: Document, now: datetime) -> list[str]:
        """Go on to where another task may have its turn."""
        problems: list[str] = []
        while wait := running.waits_for(act.task):
            if isinstance(wait, Fetch):
                answer = ANSWERS["error"] if act.fails else Answer(document)
                running.happen(Happened(now, act.task, result=answer))
            elif isinstance(wait, Operation) and self._goes_on(wait):
                problems += self._operate(running, act.task, now)
            else:
                break
        return problems

    def _goes_on(self, wait: Operation) -> bool:
        turns = self.world.turns
        return turns == "request" or (turns == "commit" and not wait.commits)

    def _operate(self, running: Running, task: str, now: datetime) -> list[str]:
        """Run one operation; a message that was received before must change nothing."""
        again = task.endswith(" again")
        before = rows_of(self.db, task.split()[1]) if again else None
        running.operate(task, now)
        return repeat_problems(self.db, task.split()[1], before) if before else []

    def _numbered(self, process: Process) -> int:
        if process.key not in self._numbers:
            self._numbers[process.key] = len(self.processes)
            self.processes.append(process)
        return self._numbers[process.key]


async def _start(bridge: Bridge, drill: str | None, vm: str) -> None:
    await bridge.runtime.identity.learn(bridge.metadata)
    if drill is not None:
        event = ScheduledEvent(drill, "Reboot", "Scheduled", (vm,), START + NOTICE)
        planned = Drill(tracked(event, vm, START), "ops", "control", START, START + NOTICE)
        await bridge.journal.run(lambda store: drills.begin(store, planned, (), START.timestamp()))


async def _poll(bridge: Bridge) -> None:
    """One round of `Poller.run`."""
    async with bridge.endpoint.turn:
        await bridge.poller.poll(bridge.metadata)


async def _decide(bridge: Bridge) -> None:
    """One round of `Decisions.run`."""
    journal: Any = bridge.journal
    journal.woken = False
    await bridge.consider()


async def _take(bridge: Bridge, message: Message, world: World) -> None:
    """What a listener does with each message; or a caller, if it is local."""
    delivery = world.delivery(message)
    if message.at is not None:
        await bridge.intake.take_local(delivery, "sink", f"sink:{message.who}")
    else:
        signed = message.signed or message.forged
        await bridge.intake.take(delivery, message.channel, must_sign=signed)
