"""A reload that an operator asks for: audited with its actor, and answered with what it did."""

import json

import aiohttp
import pytest
import yaml
from support.ports import free_ports
from support.running_app import serving
from support.until import until

from bridge import platform
from bridge.app.engine import Engine
from bridge.app.lifecycle import App
from bridge.config import changes
from bridge.runtime.status import ReloadResult


def audits(place):
    lines = (place.folder / "left.jsonl").read_text().splitlines()
    told = [json.loads(line)["data"] for line in lines]
    return [one for one in told if one.get("action") == "configuration.loaded"]


async def requested(app: App) -> ReloadResult:
    assert app.runtime.reload is not None
    return await app.runtime.reload("ops", "http")


async def test_a_requested_reload_says_what_changed_and_names_who_asked(place):
    async with serving(place) as app:
        more = {"left": place.sink("left"), "right": place.sink("right")}
        place.write(sinks=more, stop_grace="4s")
        done = await requested(app)
        assert (done.outcome, done.changed) == ("applied", ("sinks.right", "stop_grace"))
        assert app.runtime.status.reload == done
        await until(lambda: len(audits(place)) == 2)
    assert [(one["actor"], one["via"]) for one in audits(place)] == [
        ("bridge", "file"),
        ("ops", "http"),
    ]


async def test_a_requested_reload_of_a_bad_file_says_why_and_changes_nothing(place):
    async with serving(place) as app:
        before = app.runtime.config
        place.file.write_text(yaml.safe_dump({**place.keys, "stop_grace": "1s", "sink": {}}))
        done = await requested(app)
        assert (done.outcome, done.changed) == ("rejected", ())
        assert "sink" in done.errors[0]
        assert app.runtime.config is before
        assert (app.runtime.status.reload, app.runtime.status.reloads_failed) == (done, 1)


async def ask(place):
    connector = platform.control_connector(platform.control_address(place.state_dir))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post("http://bridge/api/v1/reload") as answer,
    ):
        return answer.status, await answer.json(content_type=None)


async def test_a_reload_that_reopens_the_listeners_is_answered_before_they_close(place):
    first, second = free_ports(2)
    place.write(http={"listen": f"127.0.0.1:{first}"})
    async with serving(place) as app:
        place.write(http={"listen": f"127.0.0.1:{second}"})
        status, body = await ask(place)
        assert (status, body["outcome"], body["changed"]) == (202, "reopening", ["http.listen"])
        await until(lambda: app.runtime.status.reload is not None)
        assert isinstance(app.runtime.status.reload, ReloadResult)
        assert app.runtime.status.reload.outcome == "applied"
        assert str(app.runtime.config.http.listen) == f"127.0.0.1:{second}"


async def test_an_unexpected_failure_of_a_reload_is_answered_too(place, monkeypatch):
    async with serving(place) as app:

        async def fail(_):
            raise RuntimeError("oops")

        monkeypatch.setattr(Engine, "configure_sources", fail)
        done = await requested(app)
        assert (done.outcome, "log says why" in done.errors[0]) == ("rejected", True)


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ({}, []),
        ({"approvals": {"require": "any"}}, ["approvals.require"]),
        ({"http": {"listen": None, "tokens": ["a"]}}, ["http.tokens"]),
    ],
)
def test_changes_are_keys_and_never_values(place, keys, changed):
    before = place.write(
        http={"listen": None, "tokens": ["b"]} if "http" in keys else {"listen": None}
    )
    assert changes(before, place.write(**keys)) == changed


async def test_new_listeners_keep_the_sessions_of_the_console(place):
    first, second = free_ports(2)
    tokens = [{"name": "ops", "token": "secret", "scopes": ["read", "operate"]}]
    place.write(http={"listen": f"127.0.0.1:{first}", "tokens": tokens})
    async with serving(place) as app, aiohttp.ClientSession() as session:
        at = f"http://127.0.0.1:{first}/api/v1/session"
        async with session.post(at, json={"token": "secret"}) as answer:
            key = (await answer.json())["key"]
            ((_, cookie),) = answer.cookies.items()
        place.write(http={"listen": f"127.0.0.1:{second}", "tokens": tokens})
        await requested(app)
        await until(lambda: app.runtime.status.reload is not None)
        sent = {"Cookie": f"seb-session-{second}={cookie.value}", "X-Session-Key": key}
        at = f"http://127.0.0.1:{second}/api/v1/session"
        async with session.get(at, headers=sent) as answer:
            assert (await answer.json())["caller"]["name"] == "ops"
