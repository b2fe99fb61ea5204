"""Starting, serving, polling once and stopping: the bridge as one process."""

import asyncio
import logging
import time

import pytest
from support.journal_tools import opened
from support.recording_sink import RecordingSink
from support.running_app import serving
from support.until import until

from bridge.app import lifecycle as module
from bridge.app.lifecycle import App, run
from bridge.app.reload import WebAccess
from bridge.journal import Journal, Newer
from bridge.platform import AlreadyRunning, lock
from bridge.plugins import Unavailable


async def test_once_polls_drains_and_leaves(place, simulator):
    simulator.world.create(type="Reboot", notice="15m")
    assert await run(place.load(), place.load, once=True) == 0
    assert place.told("left") == ["scheduled", "source.snapshot"]
    assert await run(place.load(), place.load, once=True) == 0
    assert place.told("left", "source.snapshot") == ["scheduled"]


async def test_once_fails_without_an_answer(place, simulator):
    simulator.world.fault("status", status=500)
    assert await run(place.load(), place.load, once=True) == 1


async def test_once_fails_when_something_is_left(place, caplog):
    (place.folder / "blocked").touch()
    sinks = {"left": place.sink("left"), "dead": place.sink("blocked/x")}
    config = place.write(sinks=sinks, stop_grace="200ms")
    assert await run(config, place.load, once=True) == 1
    assert place.told("left") == ["source.snapshot"]
    (said,) = [r for r in caplog.records if r.message == "bridge.undelivered"]
    assert said.left == 1


async def test_what_a_sink_does_not_want_is_not_left(place):
    (place.folder / "blocked").touch()
    picky = place.sink("blocked/x", only={"types": ["azure.scheduledevents.started.v1"]})
    config = place.write(sinks={"dead": picky}, stop_grace="2s")
    assert await run(config, place.load, once=True) == 0


async def test_two_bridges_do_not_share_a_directory(place):
    with lock(place.state_dir), pytest.raises(AlreadyRunning, match="already running"):
        await run(place.load(), place.load, once=True)


async def test_a_newer_journal_is_not_touched(place):
    async with opened(place.state_dir / "journal.db") as journal:
        await journal.run(lambda s: s.connection.execute("PRAGMA user_version = 99"))
    with pytest.raises(Newer):
        await run(place.load(), place.load, once=True)


async def test_a_bridge_starts_with_a_read_only_directory(place, caplog):
    (place.folder / "file").touch()
    config = place.write(state_dir=str(place.folder / "file" / "state"))
    assert await run(config, place.load, once=True) == 0
    said = [r.message for r in caplog.records if r.levelname == "ERROR"]
    assert said == ["state_dir.unwritable", "journal.unwritable"]
    assert place.told("left") == ["source.snapshot"]


async def test_a_journal_that_others_may_read_is_a_warning(place, caplog):
    await run(place.load(), place.load, once=True)
    assert "journal.permissions_too_open" not in caplog.text
    place.state_dir.chmod(0o755)
    (place.state_dir / "journal.db").chmod(0o644)
    await run(place.load(), place.load, once=True)
    (said,) = [r for r in caplog.records if r.message == "journal.permissions_too_open"]
    assert said.path == str(place.state_dir / "journal.db")


async def test_it_serves_until_it_is_stopped(place, simulator):
    async with serving(place) as app:
        event = simulator.world.create(type="Reboot", notice="15m")
        await until(lambda: "scheduled" in place.told("left"))
        simulator.world.start(event.name)
        await until(lambda: "started" in place.told("left"))
        assert app.runtime.status.sinks["left"].state == "connected"
    kinds = place.told("left")
    assert sorted(kinds[:2]) == ["bridge.audited", "source.snapshot"]
    assert kinds[2:] == ["scheduled", "started"]


async def test_the_first_line_says_which_file(place, caplog):
    caplog.set_level(logging.INFO, "bridge")
    await run(place.load(), place.load, once=True)
    first = caplog.records[0]
    assert (first.message, first.config) == ("bridge.starting", str(place.file))


async def test_it_stops_in_order(place, simulator, monkeypatch, caplog):
    """Polling stops first, then the sinks drain, and what they accept is settled."""
    caplog.set_level(logging.INFO, "bridge.app")
    gate = asyncio.Event()
    recorder = RecordingSink(lambda _: gate.wait(), answer=lambda results: [None for _ in results])
    monkeypatch.setattr("bridge.delivery.workers.find_sink", lambda _: recorder.plugin)
    async with serving(place) as app:
        await until(lambda: recorder.batches)
        before = recorder.left  # it may have connected before this VM's name was known
        app._stop.set()
        await until(lambda: "bridge.stopping" in [r.message for r in caplog.records])
        await asyncio.sleep(0.05)
        polls = app.runtime.status.source.polls
        simulator.world.create(type="Reboot", notice="15m")
        await asyncio.sleep(0.5)
        assert app.runtime.status.source.polls == polls
        assert recorder.left == before
        gate.set()
        await until(lambda: recorder.left > before)
    (said,) = [r for r in caplog.records if r.message == "bridge.stopped"]
    assert said.undelivered == 0
    assert app.runtime.status.source.transitions == {}


async def test_a_dead_sink_delays_a_stop_by_at_most_the_grace(place, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "bridge.app")
    place.write(stop_grace="300ms")
    recorder = RecordingSink(lambda _: Unavailable("never"))
    monkeypatch.setattr("bridge.delivery.workers.find_sink", lambda _: recorder.plugin)
    async with serving(place) as app:
        await until(lambda: recorder.batches)
        began = time.monotonic()
        app._stop.set()
    assert 0.25 < time.monotonic() - began < 5
    (said,) = [r for r in caplog.records if r.message == "bridge.stopped"]
    assert said.undelivered >= 1
    (before,) = [r for r in caplog.records if r.message == "bridge.draining"]
    assert 1 <= sum(before.left.values()) <= said.undelivered


async def test_a_silent_source_does_not_keep_the_rest_from_starting(place, simulator, monkeypatch):
    monkeypatch.setattr(module, "HEAD_START", 0.05)
    simulator.world.fault("delay", delay="20s")
    simulator.world.fault("delay", delay="20s", paths=["instance"])
    journal = Journal(place.state_dir / "journal.db")
    await journal.open()
    app = App(module._runtime(place.load(), journal), place.load, place.state_dir)
    task = asyncio.create_task(app.serve())
    await until(lambda: place.told("left") == ["bridge.audited"])
    app._stop.set()
    async with asyncio.timeout(10):
        assert await task == 0
    await journal.close()


async def test_what_the_first_poll_shows_is_delivered_before_anything_else_is_opened(
    place, simulator, monkeypatch
):
    simulator.world.create(name="e", type="Reboot", notice="1h")
    told, original = [], WebAccess.open

    async def open_web(self):
        told.extend(place.told("left"))
        await original(self)

    monkeypatch.setattr(WebAccess, "open", open_web)
    async with serving(place):
        pass
    assert "scheduled" in told


async def test_the_limit_of_open_files_is_raised_before_anything_is_opened(place, monkeypatch):
    asked = []

    def raise_open_files(wanted: int) -> None:
        asked.append((wanted, place.state_dir.exists()))

    monkeypatch.setattr(module.platform, "raise_open_files", raise_open_files)
    await run(place.load(), place.load, once=True)
    assert asked == [(65536, False)]
