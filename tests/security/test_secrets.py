"""No secret of the configuration appears in an error, a log, an answer, a command or a file."""

import base64
import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.bridge_process import Stage, announce, stage
from support.judge import lines
from support.ports import free_ports

from bridge.common.signatures import read_key, sign
from bridge.config import ConfigError, load

MISPLACED = "kestrel-9f2c4b"
"""A password where there should be none; an error must not repeat it."""
URLS = [
    f"{scheme}://bridge:{MISPLACED}@broker.example:1234/p" for scheme in ("https", "http", "mqtt")
]
BARE = f"bridge:{MISPLACED}@broker.example:1234"


def sink(kind, **more):
    return {"sinks": {"a": {"type": kind, **more}}}


def oauth(url):
    return {"token_url": url, "client_id": "c", "client_secret": "s"}


PLACES = {
    "source.endpoint": lambda url: {"source": {"endpoint": url}},
    "http.listen": lambda url: {"http": {"listen": url}},
    "http.probes_listen": lambda url: {"http": {"probes_listen": url}},
    "kafka.bootstrap_servers": lambda url: sink("kafka", bootstrap_servers=[url]),
    "kafka.bootstrap_servers as text": lambda url: sink("kafka", bootstrap_servers=url),
    "kafka.oauth": lambda url: sink(
        "kafka",
        bootstrap_servers=["b.example:9093"],
        sasl={"mechanism": "OAUTHBEARER", "oauth": oauth(url)},
    ),
    "kafka.managed_identity": lambda url: sink(
        "kafka",
        bootstrap_servers=["b.example:9093"],
        sasl={"mechanism": "OAUTHBEARER", "managed_identity": {"resource": "r", "endpoint": url}},
    ),
    "mqtt.host": lambda url: sink("mqtt", host=url),
    "mqtt.path": lambda url: sink("mqtt", host="b.example", transport="websockets", path=url),
    "webhook.url": lambda url: sink("webhook", url=url),
    "webhook.proxy": lambda url: sink("webhook", url="https://a.example", proxy=url),
    "webhook.oauth": lambda url: sink("webhook", url="https://a.example", oauth=oauth(url)),
    "splunk.url": lambda url: sink("splunk", url=url, token="t"),
    "splunk.proxy": lambda url: sink("splunk", url="https://a.example", token="t", proxy=url),
    "syslog.address": lambda url: sink("syslog", address=url),
}


@pytest.mark.parametrize("url", [*URLS, BARE], ids=["https", "http", "mqtt", "bare"])
@pytest.mark.parametrize("place", PLACES)
def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path, place, url):
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(PLACES[place](url)))
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert MISPLACED not in str(caught.value)
    assert str(path) in str(caught.value)


# --- a whole run ---------------------------------------------------------------------------------

KEY = "whsec_" + base64.b64encode(b"osprey-hmac-key-of-32-bytes-long").decode()
OTHER_KEY = "whsec_" + base64.b64encode(b"harrier-hmac-key-of-32-bytes-lng").decode()
SIGNING = "whsec_" + base64.b64encode(b"buzzard-webhook-key-of-32-bytes.").decode()
SECRETS = {
    "token": "falcon-token-5d1e",
    "token in a file": "merlin-token-77aa",
    "hmac key": KEY.removeprefix("whsec_"),
    "hmac key in a file": OTHER_KEY.removeprefix("whsec_"),
    "signing key": SIGNING.removeprefix("whsec_"),
    "path of a webhook": "gyrfalcon-path-0c3d",
    "query of a webhook": "hobby-query-91be",
    "header": "goshawk-header-42cc",
    "bearer in a file": "sparrowhawk-bearer-3a3a",
    "basic password": "eagle-basic-66f0",
    "proxy password": "vulture-proxy-18d9",
    "oauth secret": "condor-oauth-b2b4",
    "environment": "caracara-env-7e7e",
    "splunk token": "secretary-splunk-5f5f",
    "kafka password": "kite-kafka-2d2d",
    "mqtt password": "owl-mqtt-8c8c",
    "mqtt header": "shrike-mqtt-header-4e4e",
    "command variable": "raven-command-1b1b",
    "routing key": "jackdaw0routing0key0with032chars",
}
PAIRS = {"basic password": "bridge", "proxy password": "gate", "oauth secret": "client"}


def spellings() -> dict[str, str]:
    """Each secret as it is, and as HTTP sends it with a name."""
    encoded = {
        f"{what}, encoded": base64.b64encode(f"{who}:{SECRETS[what]}".encode()).decode()
        for what, who in PAIRS.items()
    }
    return SECRETS | encoded


def found_in(text: str) -> list[str]:
    return [what for what, secret in spellings().items() if secret in text]


@asynccontextmanager
async def parrot() -> AsyncGenerator[str]:
    """A receiver that refuses everything and repeats all that it was sent."""

    async def repeat(request: web.Request) -> web.Response:
        sent = [request.raw_path, *request.headers.values(), await request.text()]
        words = [part.removeprefix("Basic ") for part in sent]
        known = [base64.b64decode(one).decode() for one in words if one != sent[words.index(one)]]
        return web.Response(status=400, text="\n".join([*known, *sent]))

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", repeat)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def in_file(folder: Path, what: str, text: str | None = None) -> dict[str, str]:
    path = folder / f"{what.replace(' ', '-')}.secret"
    path.write_text(text or SECRETS[what])
    return {"file": str(path)}


def failing_sinks(folder: Path, at: str, closed: int) -> dict[str, Any]:
    """Sinks with a secret in every place that can hold one; all of them fail."""
    host, _, port = at.partition(":")
    hook = {"type": "webhook", "url": f"http://{at}/x"}
    path, query = SECRETS["path of a webhook"], SECRETS["query of a webhook"]
    given: dict[str, dict[str, Any]] = {
        "url": {**hook, "url": f"http://{at}/{path}?access_token={query}", "secret": SIGNING},
        "header": {**hook, "headers": {"X-Key": SECRETS["header"]}},
        "bearer": {**hook, "bearer": in_file(folder, "bearer in a file")},
        "basic": {**hook, "basic": {"username": "bridge", "password": SECRETS["basic password"]}},
        "proxied": {
            **hook,
            "url": "http://127.0.0.1:9/y",
            "proxy": {
                "url": f"http://{at}",
                "username": "gate",
                "password": SECRETS["proxy password"],
            },
        },
        "oauth": {
            **hook,
            "oauth": {
                "token_url": f"http://{at}/token",
                "client_id": "client",
                "client_secret": SECRETS["oauth secret"],
            },
        },
        "variable": {**hook, "bearer": "${PLANTED}"},
        "pager": {**hook, "format": {"type": "pagerduty", "routing_key": SECRETS["routing key"]}},
        "splunk": {"type": "splunk", "url": f"http://{at}", "token": SECRETS["splunk token"]},
        "kafka": {
            "type": "kafka",
            "bootstrap_servers": [f"127.0.0.1:{closed}"],
            "sasl": {
                "mechanism": "PLAIN",
                "username": "bridge",
                "password": SECRETS["kafka password"],
            },
        },
        "mqtt": {
            "type": "mqtt",
            "host": "127.0.0.1",
            "port": closed,
            "username": "bridge",
            "password": SECRETS["mqtt password"],
        },
        "sockets": {
            "type": "mqtt",
            "host": host,
            "port": int(port),
            "transport": "websockets",
            "headers": {"X-Key": SECRETS["mqtt header"]},
        },
        "command": {
            "type": "command",
            "argv": ["sh", "-c", "env >&2; exit 3"],
            "env": {"KEY": SECRETS["command variable"]},
        },
    }
    return {name: {**one, "required": False} for name, one in given.items()}


def access(folder: Path, port: int) -> dict[str, Any]:
    tokens = [
        {"name": "ops", "token": SECRETS["token"], "scopes": ["read", "approve", "operate"]},
        {"name": "filed", "token": in_file(folder, "token in a file")},
    ]
    allow = [
        {"approver": "orders", "keys": [{"hmac": KEY}]},
        {
            "approver": "billing",
            "keys": [{"hmac": in_file(folder, "hmac key in a file", OTHER_KEY)}],
        },
    ]
    return {
        "http": {"listen": f"127.0.0.1:{port}", "tokens": tokens},
        "approvals": {"allow": allow, "require": {"approvers": ["orders", "billing"]}},
    }


PATHS = (
    "status",
    "sinks",
    "sources",
    "events",
    "dead-letters",
    "approvals",
    "drills",
    "openapi.json",
    "session",
)


async def everything_said(at: Stage, base: str, event: str) -> dict[str, str]:
    """Every answer of the API, and the output of every command that reads."""
    said: dict[str, str] = {}
    header = {"Authorization": f"Bearer {SECRETS['token']}"}
    async with aiohttp.ClientSession(headers=header) as session:
        for path in ("/", "/livez", "/readyz", "/metrics", *(f"/api/v1/{one}" for one in PATHS)):
            async with session.get(base + path) as answer:
                said[path] = f"{answer.headers} {await answer.text()}"
        letters = json.loads(said["/api/v1/dead-letters"].partition("> ")[2])["deadLetters"]
        assert letters
        for letter in letters:
            async with session.get(f"{base}/api/v1/dead-letters/{letter['id']}") as answer:
                said[letter["id"]] = await answer.text()
        async with session.post(
            f"{base}/api/v1/session", json={"token": SECRETS["token"]}
        ) as answer:
            said["log-in"] = f"{answer.headers} {await answer.text()}"
            assert answer.status == 201
        async with session.get(f"{base}/api/v1/events/{event}") as answer:
            said["event"] = await answer.text()
    for words in (["check"], ["sinks"], ["events"], ["events", event], ["dead-letters", "list"]):
        _, said["seb " + " ".join(words)] = await at.beside(*words)
    return said


async def send_refused_votes(base: str, event: str) -> None:
    """Without a proof, with a wrong one, and with a wrong token that contains a real one."""
    body = json.dumps({"eventId": event, "approver": "orders"}).encode()
    forged = sign([read_key(SIGNING)], "v-1", int(time.time()), body)
    wrong = {"Authorization": f"Bearer {SECRETS['token']}x"}
    async with aiohttp.ClientSession() as session:
        for headers in ({}, forged, wrong):
            sent = {**headers, "Content-Type": "application/json"}
            async with session.post(f"{base}/api/v1/approvals", data=body, headers=sent) as answer:
                assert answer.status in (401, 403)


async def test_no_secret_of_the_configuration_is_found_anywhere_after_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED", SECRETS["environment"])
    port, closed = free_ports(2)
    async with parrot() as told, stage(tmp_path / "run") as at:
        at.configure(
            sinks={**at.config["sinks"], **failing_sinks(tmp_path, told, closed)},
            **access(tmp_path, port),
            stop_grace="100ms",
        )
        event = announce(at, "e")
        await at.start()
        base = f"http://127.0.0.1:{port}"
        await at.until_said("http.listening")
        await at.until(lambda: at.files and lines(at.files[0]), "the announcement")
        await at.until(lambda: len(failures(at)) >= len(at.config["sinks"]) - 2, "all failures")
        await send_refused_votes(base, event)
        said = await everything_said(at, base, event)
        limits = Path(f"/proc/{at.process.pid}/limits").read_text()
        assert await at.stop() == 0
        said["the log"] = at.output()
        for path in [*at.state_dir.iterdir(), *at.files]:
            said[path.name] = path.read_bytes().decode("latin-1") if path.is_file() else ""
    assert {"journal.db", "left.jsonl", "the log", "seb check"} <= set(said)
    assert {where: found_in(text) for where, text in said.items() if found_in(text)} == {}
    assert re.search(r"^Max core file size +0 ", limits, re.MULTILINE), limits


def failures(at: Stage) -> set[str]:
    """The sinks that the log reports as failing."""
    names = ("sink.unavailable", "sink.dead_letter")
    return {one["sink"] for name in names for one in at.said(name)}
