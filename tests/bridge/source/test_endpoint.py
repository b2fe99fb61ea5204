"""Where the metadata service is: configured, remembered, or discovered."""

from itertools import chain, repeat

from support.polling import restarted, run_for

from bridge.metadata.discovery import Attempt, Candidate
from bridge.simulator import Scenario, Simulator


def searches(monkeypatch, *answers: str | None) -> list[str | None]:
    """What each search finds, the last result forever; and what was remembered each time."""
    asked: list[str | None] = []
    found = chain(answers, repeat(answers[-1]))

    async def discover(_, *, configured, remembered, budget):
        assert configured is None
        asked.append(remembered)
        url = next(found)
        candidate = Candidate(url or "http://169.254.169.254", "well-known")
        tried = [Attempt(candidate, "not there", chosen=url is not None)]
        return (candidate if url else None), tried

    monkeypatch.setattr("bridge.source.endpoint.discover", discover)
    return asked


async def test_an_endpoint_that_cannot_be_found_is_looked_for_again(
    simulator, tmp_path, monkeypatch, hurry
):
    searches(monkeypatch, None, None, simulator.endpoint)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        assert not await bridge.poller.once()
        assert bridge.status.problem == "unreachable"
        assert bridge.status.detail == (
            "No metadata service was found: is this an Azure VM? "
            "Tried http://169.254.169.254: not there."
        )
        assert bridge.status.last_poll is not None
        await run_for(bridge.poller, lambda: bridge.status.last_good)


async def test_an_endpoint_that_was_found_is_remembered_and_looked_for_when_it_is_lost(
    simulator, tmp_path, monkeypatch, hurry
):
    async with Simulator(Scenario(rate_limit=None)) as first:
        gone = first.endpoint
    asked = searches(monkeypatch, gone, simulator.endpoint)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.last_good)
        assert bridge.status.problems["unreachable"] >= 5
        assert asked == [None, gone]
        assert await bridge.journal.run(lambda s: s.recall("endpoint")) == simulator.endpoint


async def test_an_endpoint_that_answers_badly_is_kept(simulator, tmp_path, monkeypatch, hurry):
    asked = searches(monkeypatch, simulator.endpoint)
    simulator.world.fault("status", status=500)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.polls >= 8)
        assert len(asked) == 1


async def test_an_endpoint_that_was_configured_is_never_looked_for(tmp_path, hurry):
    async with Simulator(Scenario(rate_limit=None)) as first:
        pass
    async with restarted(first, tmp_path / "journal.db") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.polls >= 8)
        assert bridge.status.origin == "configured"
