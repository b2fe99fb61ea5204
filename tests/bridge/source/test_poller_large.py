"""Documents with thousands of events: all are announced, and the loop goes on."""

from support.polling import restarted
from support.turns import turns
from support.world import scheduled_event

from bridge.core.model import Document
from bridge.metadata.answers import Answer, SourceProblem
from bridge.simulator import Simulator

MANY = 5000


class Service:
    """A metadata service whose next answer is given."""

    def __init__(self, incarnation: int, *events: str) -> None:
        listed = tuple(scheduled_event(event_id) for event_id in events)
        self._answer = Answer(Document(incarnation, listed))

    async def fetch(self) -> Answer:
        return self._answer

    async def instance(self) -> SourceProblem:
        return SourceProblem("not-found", "There is none.")


def guids() -> list[str]:
    return [f"602D9444-D2CD-49C7-8624-{number:012X}" for number in range(MANY)]


async def test_thousands_of_events_that_come_stay_and_go_do_not_hold_up_the_loop(bridge):
    for incarnation, events in ((1, guids()), (1, guids()), (2, [])):
        service = Service(incarnation, *events)
        async with turns() as found:
            await bridge.poller.poll(service)
        assert found.longest < found.whole / 2
    assert bridge.status.transitions.pop("scheduled") == MANY
    assert list(bridge.status.transitions.values()) == [MANY]


async def test_the_snapshot_of_thousands_of_events_does_not_hold_up_the_loop(bridge):
    service = Service(1, *guids())
    await bridge.poller.poll(service)
    bridge.poller._snapshot_due = 0.0
    async with turns() as found:
        await bridge.poller.poll(service)
    assert found.longest < found.whole / 2


async def test_five_thousand_events_of_the_simulator_are_all_announced(tmp_path):
    async with Simulator() as simulator:
        for _ in range(MANY):
            simulator.world.create(type="Reboot", notice="15m")
        async with restarted(simulator, tmp_path / "journal.db", scope="all") as bridge:
            assert await bridge.poll() is None
            assert bridge.status.transitions == {"scheduled": MANY}
            assert len((await bridge.journal.load()).tracked) == MANY
