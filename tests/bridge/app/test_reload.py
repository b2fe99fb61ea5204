"""A new configuration takes effect: all of it, or nothing."""

import asyncio
import contextlib
import json
import shutil
import socket
import ssl

import pytest
import yaml
from support.certificates import issue
from support.ports import free_ports
from support.running_app import reload, serving
from support.until import until

from bridge.app.lifecycle import run
from bridge.app.reload import CannotStart
from bridge.runtime.http_address import HttpAddress, read_address


async def test_a_configured_port_that_is_taken_is_reported_in_a_sentence(place, taken):
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
        first = app.runtime.status.configured
        assert await reload(app, caplog) == "configuration.loaded"
        assert app.runtime.status.configured != first
        await until(lambda: "scheduled" in place.told("right"))
        place.write(source={**place.keys["source"], "scope": "all"})
        assert await reload(app, caplog) == "configuration.loaded"
        simulator.world.create(type="Freeze", notice="15m", resources=["another-vm"])
        await until(lambda: place.told("right").count("scheduled") == 2)
        assert app.runtime.identity.config.source.scope == "all"
        assert app.runtime.status.reloads_failed == 0
    assert place.told("left").count("bridge.audited") == 3
    assert place.told("right")[0] == "scheduled"


def unable(caplog):
    """The tokens that the log named since the last time, each with its level."""
    found = [r for r in caplog.records if r.message == "http.token_cannot_operate"]
    told = [(record.token, record.levelname) for record in found]
    caplog.clear()
    return told


async def test_start_and_reload_name_the_tokens_that_may_vote_but_not_operate(place, caplog):
    caplog.set_level("INFO")
    whole = {"name": "ops", "token": "b", "scopes": ["read", "approve", "operate"]}
    desk = {"name": "desk", "token": "c", "scopes": ["approve"]}
    place.write(http={"listen": None, "tokens": ["a", whole, desk]})
    async with serving(place) as app:
        assert unable(caplog) == [("token-1", "WARNING"), ("desk", "INFO")]
        place.write(http={"listen": None, "tokens": [whole, desk]})
        assert await reload(app, caplog) == "configuration.loaded"
        await until(lambda: place.told("left").count("bridge.audited") == 2)
        assert unable(caplog) == [("desk", "INFO")]
    audits = [
        json.loads(line)["data"] for line in (place.folder / "left.jsonl").read_text().splitlines()
    ]
    tokens = [one["detail"]["tokens"] for one in audits if "action" in one]
    assert tokens[1] == {"ops": ["read", "approve", "operate"], "desk": ["approve"]}


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
        configured = app.runtime.status.configured
        keys = {**place.keys, "stop_grace": "1s", **changes}
        place.file.write_text(yaml.safe_dump(keys))
        assert await reload(app, caplog) == "configuration.rejected"
        assert said in caplog.records[-1].error
        assert app.runtime.config is before
        assert app.runtime.status.configured == configured
        assert app.runtime.status.reloads_failed == 1
        assert all(app.runtime.status.sinks[name] is one for name, one in workers.items())


async def test_a_reload_to_a_port_that_is_taken_changes_nothing(place, caplog, taken):
    place.write(http={"listen": "127.0.0.1:0"})
    async with serving(place) as app:
        before = app.runtime.config
        more = {"left": place.sink("left"), "right": place.sink("right")}
        place.write(http={"listen": f"127.0.0.1:{taken}"}, sinks=more)
        assert await reload(app, caplog) == "configuration.rejected"
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
        assert await reload(app, caplog) == "configuration.rejected"
        assert "http.tls: " in caplog.records[-1].error
        assert await trusted() == [True, False]
        shutil.copy(second.server.both, ours)
        assert await reload(app, caplog) == "configuration.loaded"
        assert await trusted() == [False, True]


async def test_systemd_is_notified_of_every_step(place, caplog, monkeypatch):
    heard: list[str] = []
    monkeypatch.setattr("bridge.platform.notify", heard.append)
    async with serving(place) as app:
        await until(lambda: heard)
        assert await reload(app, caplog) == "configuration.loaded"
        await until(lambda: len(heard) == 3)
        assert app.reload
        original = app.reload.load
        monkeypatch.setattr(app.reload, "load", lambda: 1 / 0)
        app._again.set()
        await until(lambda: len(heard) == 5)
        monkeypatch.setattr(app.reload, "load", original)
    assert heard == [*["READY=1"], *["RELOADING=1", "READY=1"] * 2, "STOPPING=1"]


async def test_a_new_limit_of_connections_takes_effect_with_a_reload(place, caplog):
    [port] = free_ports(1)
    place.write(http={"listen": f"127.0.0.1:{port}"})
    async with serving(place) as app:
        place.write(http={"listen": f"127.0.0.1:{port}", "max_connections": 1})
        assert await reload(app, caplog) == "configuration.loaded"
        _, first = await asyncio.open_connection("127.0.0.1", port)
        reader, second = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 9) == b""
        first.close()
        second.close()


async def test_the_address_of_http_is_in_the_state_directory_while_it_is_served(place, caplog):
    place.write(http={"listen": "127.0.0.1:0"})
    async with serving(place) as app:
        first = read_address(place.state_dir)
        assert first is not None
        assert first.url.startswith("http://127.0.0.1:")
        [port] = free_ports(1)
        place.write(http={"listen": f"127.0.0.1:{port}"})
        assert await reload(app, caplog) == "configuration.loaded"
        assert read_address(place.state_dir) == HttpAddress(f"http://127.0.0.1:{port}")
        place.write(http={"listen": None})
        assert await reload(app, caplog) == "configuration.loaded"
        assert read_address(place.state_dir) is None
        place.write(http={"listen": f"127.0.0.1:{port}"})
        assert await reload(app, caplog) == "configuration.loaded"
    assert not (place.state_dir / "http.json").exists()
