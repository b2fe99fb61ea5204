"""Explores every state of a world, breadth first; the first story that breaks a rule is the shortest."""

import logging
import time
from dataclasses import dataclass, field

from model.invariants import final_problems, held_problems, quiet_problems
from model.operations import Post
from model.steps import Step, Steps
from model.world import State, World


@dataclass
class Report:
    """What was found in a world. `story` is how the first problem comes about."""

    world: World
    states: int = 0
    transitions: int = 0
    depth: int = 0
    processes: int = 0
    posts: int = 0
    finals: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counted = (
            f"{self.world.name}: {self.states} states, {self.transitions} transitions, "
            f"depth {self.depth}, {self.finals} ends, {self.seconds:.1f} s"
        )
        if not self.problems:
            return counted
        told = [f"  {number}. {line}" for number, line in enumerate(self.story, 1)]
        return "\n".join([counted, *told, *(f"  BROKEN: {one}." for one in self.problems)])


class Explorer:
    """Keeps how each state was reached first, and the states whose steps are not known yet."""

    def __init__(self, world: World) -> None:
        self.world, self.steps, self.report = world, Steps(world), Report(world)
        first = self.steps.first()
        self._from: dict[State, tuple[State, str] | None] = {first: None}
        self._next = [first]

    def run(self) -> Report:
        began, report = time.monotonic(), self.report
        logging.disable()
        try:
            while self._next and not report.problems:
                here, self._next = self._next, []
                for state in here:
                    self._expand(state)
                    if report.problems:
                        break
                report.depth += bool(self._next)
        finally:
            logging.disable(logging.NOTSET)
        report.states, report.processes = len(self._from), len(self.steps.bridges.processes)
        report.seconds = time.monotonic() - began
        return report

    def _expand(self, state: State) -> None:
        found = [step for step in self.steps.after(state) if step.after != state]
        for step in found:
            self.report.transitions += 1
            if problems := [*step.broke, *self._held(state, step)]:
                self._tell(state, problems, step.says)
                return
            if step.after not in self._from:
                self._from[step.after] = state, step.says
                self._next.append(step.after)
        if not any(step.ours for step in found):
            self._check_rest(state, final=not found)

    def _check_rest(self, state: State, *, final: bool) -> None:
        bridges = self.steps.bridges
        given = (self.world, state, bridges.processes, bridges.db)
        self.report.finals += final
        problems = quiet_problems(*given) + (final_problems(*given) if final else [])
        if problems:
            self._tell(state, problems)

    def _held(self, before: State, step: Step) -> list[str]:
        """The holds that a StartRequest disregards, when it leaves in this step."""
        found = list[str]()
        for at, side in enumerate(step.after.sides):
            if side.process == before.sides[at].process:
                continue
            asks = self.steps.bridges.processes[side.process].waits.get("decide")
            asked = self.steps.bridges.processes[before.sides[at].process].waits.get("decide")
            if isinstance(asks, Post) and not isinstance(asked, Post):
                self.report.posts += 1
                found += held_problems(self.world, before, at, asks.ids)
        return found

    def _tell(self, state: State, problems: list[str], last: str | None = None) -> None:
        """The shortest story that leads there."""
        story, here = [last] if last else [], self._from[state]
        while here is not None:
            story.append(here[1])
            here = self._from[here[0]]
        self.report.problems, self.report.story = problems, story[::-1]
