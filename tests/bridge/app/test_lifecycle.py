import asyncio
import contextlib
import json
import logging
import shutil
import socket
import ssl
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.certificates import issue
from support.far_side import FarSide
from support.journal_tools import opened
from support.until import until

from bridge.app import lifecycle as module
from bridge.app.lifecycle import App, run
from bridge.app.reload import CannotStart, WebAccess
from bridge.config import Config, load
from bridge.journal import Journal, Newer
from bridge.platform import AlreadyRunning, lock
from bridge.plugins import Unavailable
from bridge.simulator import Scenario, Simulator


@dataclass
class Place:
    """A directory with a configuration file, and the files of its sinks."""

    folder: Path
    endpoint: str
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def write(self, **changes: Any) -> Config:
        """Write the file with these keys changed, and read it."""
        self.keys = {
            "source": {"endpoint": self.endpoint, "poll_interval": "200ms"},
            "state_dir": str(self.state_dir),
            "stop_grace": "5s",
            "sinks": {"left": self.sink("left")},
            "http": {"listen": None},
            **self.keys,
            **changes,
        }
        self.file.write_text(yaml.safe_dump(self.keys))
        return self.load()

    def load(self) -> Config:
        return load(self.file, {})

    def sink(self, name: str, **more: Any) -> dict[str, Any]:
        return {"type": "file", "path": str(self.folder / f"{name}.jsonl"), **more}

    def told(self, name: str, *without: str) -> list[str]:
        path = self.folder / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kinds = [json.loads(line)["type"].split(".", 2)[2].removesuffix(".v1") for line in lines]
        return [kind for kind in kinds if kind not in without]


@pytest.fixture
async def simulator():
    async with Simulator(Scenario()) as made:
        yield made


@pytest.fixture
def place(tmp_path, simulator):
    made = Place(tmp_path, simulator.endpoint)
    made.write()
    return made


def ready(app: App) -> bool:
    """The configuration is audited last of all."""
    return app.runtime.status.source.last_good is not None and app.runtime._audited.year > 1


@contextlib.asynccontextmanager
async def serving(place: Place) -> AsyncGenerator[App]:
    """A bridge in this process, until it is told to stop."""
    journal = Journal(place.state_dir / "journal.db")
    await journal.open()
    app = App(module._runtime(place.load(), journal), place.load, place.state_dir)
    task = asyncio.create_task(app.serve())
    try:
        await until(lambda: task.done() or ready(app))
        yield app
        app._stop.set()
        async with asyncio.timeout(10):
            assert await task == 0
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await journal.close()


async def reload(app: App, caplog) -> str:
    """Reload, and return what was said about it."""
    caplog.clear()
    caplog.set_level(logging.INFO, "bridge.app")
    app._again.set()

    def said() -> list[str]:
        return [r.message for r in caplog.records if r.message.startswith("configuration.")]

    await until(said)
    return said()[0]


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


async def test_a_directory_that_cannot_be_written_is_no_reason_not_to_start(place, caplog):
    (place.folder / "file").touch()
    config = place.write(state_dir=str(place.folder / "file" / "state"))
    assert await run(config, place.load, once=True) == 0
    said = [r.message for r in caplog.records if r.levelname == "ERROR"]
    assert said == ["state_dir.unwritable", "journal.unwritable"]
    assert place.told("left") == ["source.snapshot"]


async def test_a_journal_that_others_may_read_is_a_warning(place, caplog):
    await run(place.load(), place.load, once=True)
    assert "journal.open_to_others" not in caplog.text
    place.state_dir.chmod(0o755)
    (place.state_dir / "journal.db").chmod(0o644)
    await run(place.load(), place.load, once=True)
    (said,) = [r for r in caplog.records if r.message == "journal.open_to_others"]
    assert said.path == str(place.state_dir / "journal.db")


async def test_it_serves_until_it_is_told_to_stop(place, simulator):
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
    """Polling first, then the sinks get their time, and what they take is settled."""
    caplog.set_level(logging.INFO, "bridge.app")
    gate = asyncio.Event()
    far_side = FarSide(lambda _: gate.wait(), answer=lambda results: [None for _ in results])
    monkeypatch.setattr("bridge.delivery.workers.find_sink", lambda _: far_side.plugin)
    async with serving(place) as app:
        await until(lambda: far_side.batches)
        before = far_side.left  # it may have been entered before this VM's name was known
        app._stop.set()
        await until(lambda: "bridge.stopping" in [r.message for r in caplog.records])
        await asyncio.sleep(0.05)
        polls = app.runtime.status.source.polls
        simulator.world.create(type="Reboot", notice="15m")
        await asyncio.sleep(0.5)
        assert app.runtime.status.source.polls == polls
        assert far_side.left == before
        gate.set()
        await until(lambda: far_side.left > before)
    (said,) = [r for r in caplog.records if r.message == "bridge.stopped"]
    assert said.undelivered == 0
    assert app.runtime.status.source.transitions == {}


async def test_a_dead_sink_keeps_nobody_longer_than_the_grace(place, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "bridge.app")
    place.write(stop_grace="300ms")
    far_side = FarSide(lambda _: Unavailable("never"))
    monkeypatch.setattr("bridge.delivery.workers.find_sink", lambda _: far_side.plugin)
    async with serving(place) as app:
        await until(lambda: far_side.batches)
        began = time.monotonic()
        app._stop.set()
    assert 0.25 < time.monotonic() - began < 5
    (said,) = [r for r in caplog.records if r.message == "bridge.stopped"]
    assert said.undelivered >= 1


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


@pytest.fixture
def taken():
    """A port that somebody else has."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


async def test_a_configured_port_that_is_taken_is_said_in_a_sentence(place, taken):
    place.write(http={"listen": f"127.0.0.1:{taken}"})
    with pytest.raises(ExceptionGroup) as caught:
        await run(place.load(), place.load)
    (error,) = caught.value.exceptions
    assert isinstance(error, CannotStart)
    assert f"127.0.0.1:{taken}" in str(error)


async def test_a_reload_applies_what_changed(place, simulator, caplog):
    async with serving(place) as app:
        simulator.world.create(type="Reboot", notice="15m")
        await until(lambda: "scheduled" in place.told("left"))
        place.write(sinks={"left": place.sink("left"), "right": place.sink("right")})
        assert await reload(app, caplog) == "configuration.loaded"
        await until(lambda: "scheduled" in place.told("right"))
        place.write(source={**place.keys["source"], "scope": "all"})
        assert await reload(app, caplog) == "configuration.loaded"
        simulator.world.create(type="Freeze", notice="15m", resources=["another-vm"])
        await until(lambda: place.told("right").count("scheduled") == 2)
        assert app.runtime.identity.config.source.scope == "all"
        assert app.runtime.status.reloads_failed == 0
    assert place.told("left").count("bridge.audited") == 3
    assert place.told("right")[0] == "scheduled"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sink": {}}, "sink"),
        ({"sinks": {"left": {"type": "nothing"}}}, "nothing"),
        ({"state_dir": "/elsewhere"}, "state_dir: changed from"),
        ({"source": {"endpoint": "http://127.0.0.1:1"}}, "source.endpoint: changed from"),
    ],
    ids=["unknown key", "unknown sink", "state_dir", "endpoint"],
)
async def test_a_reload_is_all_or_nothing(place, caplog, changes, said):
    async with serving(place) as app:
        before, workers = app.runtime.config, dict(app.runtime.status.sinks)
        keys = {**place.keys, "stop_grace": "1s", **changes}
        place.file.write_text(yaml.safe_dump(keys))
        assert await reload(app, caplog) == "configuration.refused"
        assert said in caplog.records[-1].error
        assert app.runtime.config is before
        assert app.runtime.status.reloads_failed == 1
        assert all(app.runtime.status.sinks[name] is one for name, one in workers.items())


async def test_a_reload_to_a_port_that_is_taken_changes_nothing(place, caplog, taken):
    place.write(http={"listen": "127.0.0.1:0"})
    async with serving(place) as app:
        before = app.runtime.config
        more = {"left": place.sink("left"), "right": place.sink("right")}
        place.write(http={"listen": f"127.0.0.1:{taken}"}, sinks=more)
        assert await reload(app, caplog) == "configuration.refused"
        assert app.runtime.config is before
        assert list(app.runtime.status.sinks) == ["left"]
        place.write(http={"listen": "127.0.0.1:0"})
        assert await reload(app, caplog) == "configuration.loaded"
        assert sorted(app.runtime.status.sinks) == ["left", "right"]


async def test_a_reload_takes_new_certificates_and_refuses_bad_ones(place, caplog, tmp_path):
    first, second = issue(tmp_path / "first"), issue(tmp_path / "second")
    ours = tmp_path / "server.pem"
    shutil.copy(first.server.both, ours)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    tls = {"certificate": str(ours), "key": str(ours)}
    place.write(http={"listen": f"127.0.0.1:{port}", "tls": tls})

    async def trusted() -> list[bool]:
        found = []
        for authority in (first, second):
            try:
                where = ("127.0.0.1", port)
                _, writer = await asyncio.open_connection(*where, ssl=authority.context())
                writer.close()
                found.append(True)
            except ssl.SSLError:
                found.append(False)
        return found

    async with serving(place) as app:
        await until(lambda: app.reload and app.reload.web._opened)
        assert await trusted() == [True, False]
        ours.write_text("half a file")
        assert await reload(app, caplog) == "configuration.refused"
        assert "http.tls: " in caplog.records[-1].error
        assert await trusted() == [True, False]
        shutil.copy(second.server.both, ours)
        assert await reload(app, caplog) == "configuration.loaded"
        assert await trusted() == [False, True]


async def test_systemd_hears_of_every_step(place, caplog, monkeypatch):
    heard: list[str] = []
    monkeypatch.setattr("bridge.platform.notify", heard.append)
    async with serving(place) as app:
        await until(lambda: heard)
        assert await reload(app, caplog) == "configuration.loaded"
        await until(lambda: len(heard) == 3)
        original = app.reload.load
        app.reload.load = lambda: 1 / 0
        app._again.set()
        await until(lambda: len(heard) == 5)
        app.reload.load = original
    assert heard == [*["READY=1"], *["RELOADING=1", "READY=1"] * 2, "STOPPING=1"]
