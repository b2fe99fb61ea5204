import asyncio
import time
from pathlib import Path

import pytest
from support.deliveries import fleet_of, ids
from support.journal_tools import about, everything, opened
from support.recording_sink import RecordingSink
from support.until import until

from bridge.config import Config
from bridge.plugins import Delivered, Gone, SinkSettings, Unavailable
from bridge.plugins.sinks import find_sink


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db") as made:
        yield made


def file_sink(path: Path, **more) -> SinkSettings:
    settings = find_sink("file").settings
    return settings.model_validate({"type": "file", "path": str(path), **more})


def nowhere(tmp_path: Path) -> Path:
    """A path that cannot be: what should be a directory is a file."""
    (tmp_path / "blocked").touch()
    return tmp_path / "blocked" / "file"


async def record(journal, *events) -> None:
    await journal.append(events, time.time())


async def test_every_sink_gets_everything(journal, tmp_path):
    left, right = tmp_path / "left", tmp_path / "right"
    async with fleet_of(journal) as fleet:
        await fleet.configure({"left": file_sink(left), "right": file_sink(right)})
        await record(journal, about("A"), about("B"))
        assert await fleet.drain(5) == 0
    assert sorted(ids(left)) == sorted(ids(right)) == ["A/1", "B/1"]


async def test_a_changed_sink_keeps_its_place_and_the_others_their_workers(journal, tmp_path):
    left, right = tmp_path / "left", tmp_path / "right"
    async with fleet_of(journal) as fleet:
        sinks = {"left": file_sink(left), "right": file_sink(right)}
        await fleet.configure(sinks)
        await record(journal, about("A"))
        await fleet.drain(5)
        workers = dict(fleet._workers)
        await fleet.configure({**sinks, "left": file_sink(tmp_path / "else")})
        assert fleet._workers["right"] is workers["right"]
        assert fleet._workers["left"] is not workers["left"]
        assert workers["left"].task.done()
        await record(journal, about("B"))
        await fleet.drain(5)
    assert (ids(left), ids(tmp_path / "else"), ids(right)) == (["A/1"], ["B/1"], ["A/1", "B/1"])


async def test_a_removed_sink_ends_and_is_no_longer_shown(journal, tmp_path):
    left, right = tmp_path / "left", tmp_path / "right"
    async with fleet_of(journal) as fleet:
        await fleet.configure({"left": file_sink(left), "right": file_sink(right)})
        await fleet.configure({"right": file_sink(right)})
        assert list(fleet.status) == ["right"]
        await record(journal, about("A"))
        assert await fleet.drain(5) == 0
        assert ids(left) == []
        await fleet.configure({"left": file_sink(left), "right": file_sink(right)})
        await fleet.drain(5)
    assert ids(left) == ["A/1"]


async def test_a_changed_filter_applies_to_what_is_unsettled(journal, tmp_path):
    path = nowhere(tmp_path)
    async with fleet_of(journal) as fleet:
        await fleet.configure({"sink": file_sink(path)})
        await record(journal, about("A"), about("B", eventType="Freeze"))
        await until(lambda: fleet.status["sink"].state == "unavailable")
        only = {"event_types": ["Freeze"]}
        await fleet.configure({"sink": file_sink(tmp_path / "file", only=only)})
        assert await fleet.drain(5) == 0
    assert ids(tmp_path / "file") == ["B/1"]


async def test_drain_returns_what_is_left_after_the_grace(journal, tmp_path):
    async with fleet_of(journal) as fleet:
        good, dead = file_sink(tmp_path / "file"), file_sink(nowhere(tmp_path))
        await fleet.configure({"good": good, "dead": dead})
        await record(journal, about("A"), about("B"))
        began = time.monotonic()
        assert await fleet.drain(0.3) == 2
        assert time.monotonic() - began < 5
    assert sorted(ids(tmp_path / "file")) == ["A/1", "B/1"]
    assert sorted(await journal.run(lambda store: everything(store, "dead"))) == ["A/1", "B/1"]


@pytest.fixture
def recorder(monkeypatch):
    made = RecordingSink()
    monkeypatch.setattr("bridge.delivery.workers.find_sink", lambda _: made.plugin)
    return made


async def test_a_changed_sink_finishes_its_batch(journal, recorder):
    gate = asyncio.Event()
    recorder.judge = lambda _: gate.wait()
    recorder.answer = lambda results: [None for _ in results]
    async with fleet_of(journal) as fleet:
        await fleet.configure({"sink": SinkSettings(type="fake")})
        await record(journal, about("A"))
        await until(lambda: recorder.batches)
        changed = SinkSettings(type="fake", required=False)
        changing = asyncio.create_task(fleet.configure({"sink": changed}))
        await asyncio.sleep(0.01)
        assert not changing.done()
        gate.set()
        await changing
        assert await fleet.drain(5) == 0
        assert fleet.status["sink"].required is False
    assert recorder.batches == [["A/1"]]


async def test_a_sink_that_fails_unexpectedly_is_restarted(journal, recorder, monkeypatch):
    async with fleet_of(journal) as fleet:
        await fleet.configure({"sink": SinkSettings(type="fake")})
        await until(lambda: recorder.entered)
        original, failing = journal.settle, iter([True])

        async def settle(*args):
            if next(failing, False):
                raise MemoryError
            await original(*args)

        monkeypatch.setattr(journal, "settle", settle)
        await record(journal, about("A"))
        assert await fleet.drain(5) == 0
    assert recorder.taken == ["A/1", "A/1"]
    assert recorder.entered == 2


async def test_a_reload_resumes_what_had_stopped_even_if_nothing_changed(journal, recorder):
    recorder.judge = lambda _: Gone("unsubscribed")
    sinks = {"sink": SinkSettings(type="fake")}
    async with fleet_of(journal) as fleet:
        await fleet.configure(sinks)
        await record(journal, about("A"))
        await until(lambda: fleet.status["sink"].state == "stopped")
        assert await fleet.drain(5) == 1
        recorder.judge = lambda _: None
        await fleet.configure(sinks)
        assert await fleet.drain(5) == 0
    assert recorder.taken == ["A/1"]


async def test_a_vote_is_cast_with_the_name_of_the_sink(journal, recorder):
    cast = []

    async def vote(event, sink):
        cast.append((event.id, sink))

    recorder.judge = lambda _: Delivered(approves=True)
    async with fleet_of(journal) as fleet:
        fleet.vote = vote
        await fleet.configure({"sink": SinkSettings(type="fake")})
        await record(journal, about("A"))
        assert await fleet.drain(5) == 0
    assert cast == [("A/1", "sink")]


async def test_stop_leaves_every_sink(journal, recorder):
    recorder.judge = lambda _: Unavailable("never")
    async with fleet_of(journal) as fleet:
        await fleet.configure({name: SinkSettings(type="fake") for name in ("a", "b")})
        await until(lambda: recorder.entered == 2)
    assert recorder.left == 2


def test_sinks_of_a_configuration_can_be_compared():
    one = Config.model_validate({"sinks": {"a": SinkSettings(type="x")}})
    assert one.sinks["a"] == SinkSettings(type="x")
