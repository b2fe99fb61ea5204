"""Play a scenario's script on a world, and rehearse it to find steps that can never work."""

from datetime import UTC, datetime, timedelta
from functools import partial

from bridge.simulator.world.building_blocks import NewEvent
from bridge.simulator.world.rules import Refused, RuleBroken
from bridge.simulator.world.scenario import Scenario, ScenarioStep, Unusable, names_of
from bridge.simulator.world.world import World

_REHEARSAL = datetime(2026, 1, 1, tzinfo=UTC)


class Script:
    """The steps of a scenario, put on the world's agenda.

    A step that the world refuses, for example because an approval came before it, is skipped, and
    the truth says so.
    """

    def __init__(self, world: World) -> None:
        self.left = 0
        self._world = world

    @property
    def ended(self) -> bool:
        return self.left == 0

    def begin(self) -> None:
        now = self._world.clock()
        for number, step in enumerate(self._world.scenario.script, 1):
            for turn in range(step.repeat):
                self.left += 1
                when = now + self._world.scaled(step.at + turn * step.every)
                self._world.agenda.at(when, partial(self._do, number, step, turn))

    def _do(self, number: int, step: ScenarioStep, turn: int) -> None:
        self.left -= 1
        try:
            play(self._world, step, turn)
        except Refused as refusal:
            facts = {"step": number, "action": step.action, "reason": str(refusal)}
            self._world.truth.record(self._world.clock(), "skipped", **facts)
        self._world.changed()


def play(world: World, step: ScenarioStep, turn: int = 0) -> None:
    """Do what one step says; raise `Refused` when the world does not allow it."""
    if step.create is not None:
        world.create(_named(step, step.create, turn))
    elif step.reschedule is not None:
        world.move(step.reschedule)
    elif step.update is not None:
        world.change(step.update)
    elif step.fault is not None:
        world.fault(step.fault)
    elif step.disable is not None:
        world.disable()
    elif step.clear_faults is not None:
        world.clear_faults(step.clear_faults if isinstance(step.clear_faults, str) else None)
    else:
        act = {"cancel": world.cancel, "start": world.start, "complete": world.complete}
        act[step.action](str(step.subject))


def _named(step: ScenarioStep, plan: NewEvent, turn: int) -> NewEvent:
    names = names_of(step)
    return plan.model_copy(update={"name": names[turn]}) if names else plan


def rehearse(scenario: Scenario) -> None:
    """Play the script in no time and without approvals; raise `Unusable` when it breaks a rule.

    Only the rules of a strict scenario count: an approval may change the rest at run time.
    """
    now = _REHEARSAL
    world = World(scenario, clock=lambda: now)
    turns = [
        (step.at + turn * step.every, number, step, turn)
        for number, step in enumerate(scenario.script, 1)
        for turn in range(step.repeat)
    ]
    for at, number, step, turn in sorted(turns, key=lambda item: item[:2]):
        now = _REHEARSAL + timedelta(seconds=at)
        world.advance()
        try:
            play(world, step, turn)
        except RuleBroken as broken:
            raise Unusable(
                f"scenario {scenario.name}: script.{number - 1}.{step.action}: {broken}"
            ) from None
        except Refused:
            continue
