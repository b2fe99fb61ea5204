"""HTTP: webhooks to clients in Go, JavaScript and Python, their votes, and signatures in four languages."""

import json
from importlib.metadata import version
from pathlib import Path

import aiohttp
import cloudevents
import pytest
from cloudevents.core.bindings import http as python_sdk
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from standardwebhooks import Webhook, WebhookVerificationError
from support import foreign
from support.bridge_process import announce, stage
from support.foreign import Json, Language
from support.foreign_events import about, approved, faithful, vote
from support.ports import free_ports
from support.until import until
from support.webhook_receiver import Got, receiving

pytestmark = pytest.mark.timeout(240)
MODES = ("binary", "structured")
GROUP = "HTTP"
TOKEN = "the-token"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CLIENTS: dict[Language, tuple[str, str]] = {
    "Go": ("CloudEvents SDK for Go", foreign.go_version("github.com/cloudevents/sdk-go/v2")),
    "JavaScript": ("CloudEvents SDK for JavaScript", foreign.npm_version("cloudevents")),
}
PYTHON = ("CloudEvents SDK for Python", cloudevents.__version__)


def configuration(folder: Path, hooks: dict[str, str], **keys: str) -> tuple[Json, str]:
    """A bridge with a webhook sink for each mode; and where votes go."""
    port = free_ports(1)[0]
    sinks = {
        mode: {"type": "webhook", "url": url, "mode": mode, **keys} for mode, url in hooks.items()
    }
    config = {
        "sinks": {**sinks, "file": {"type": "file", "path": str(folder / "events.jsonl")}},
        "http": {"listen": f"127.0.0.1:{port}", "tokens": [{"name": "orders", "token": TOKEN}]},
    }
    return config, f"http://127.0.0.1:{port}/api/v1/approvals"


@pytest.mark.parametrize("language", CLIENTS)
async def test_a_client_gets_our_webhooks_and_its_votes_count(
    tmp_path: Path, language: Language, proves
):
    for direction in ("gets webhooks, binary and structured", "sends votes, binary and structured"):
        proves(GROUP, *CLIENTS[language], direction)
    async with (
        foreign.running(language, "http-receive", "999") as binary,
        foreign.running(language, "http-receive", "999") as structured,
    ):
        readers = {"binary": binary, "structured": structured}
        hooks = {mode: (await reader.next())["url"] for mode, reader in readers.items()}
        config, votes = configuration(tmp_path, hooks)
        async with stage(tmp_path, **config) as at:
            await at.start()
            events = {mode: announce(at, mode, started_for=None) for mode in MODES}
            for reader in readers.values():
                read = await reader.until(about(events["structured"], "scheduled"))
                await faithful(at, read)
            await at.until_said("http.listening")
            for mode, event in events.items():
                await foreign.ask(
                    language, "http-send", votes, TOKEN, mode, vote(event, approver="orders")
                )
                await approved(at, event)
            assert await at.stop() == 0


async def test_the_python_sdk_reads_our_webhooks_and_its_votes_count(tmp_path: Path, proves):
    for direction in ("gets webhooks, binary and structured", "sends votes, binary and structured"):
        proves(GROUP, *PYTHON, direction)
    async with receiving() as receiver:
        config, votes = configuration(tmp_path, dict.fromkeys(MODES, receiver.url))
        async with stage(tmp_path, **config) as at, aiohttp.ClientSession() as session:
            await at.start()
            events = {mode: announce(at, mode, started_for=None) for mode in MODES}
            await until(lambda: len(_scheduled(receiver.got)) == 4, "the webhooks")
            for got in _scheduled(receiver.got):
                message = python_sdk.HTTPMessage(
                    {k.lower(): v for k, v in got.headers.items()}, got.body
                )
                event = python_sdk.from_http(message, JSONFormat())
                written = {**event.get_attributes(), "data": event.get_data()}
                read = json.loads(json.dumps(written, default=lambda at: at.isoformat()))
                await faithful(at, read)
            await at.until_said("http.listening")
            for mode, key in events.items():
                said = json.loads(vote(key, approver="orders"))
                given = CloudEvent(
                    {"id": f"py-{mode}", "type": "azure.scheduledevents.approve.v1", "source": "/python",
                     "specversion": "1.0", "datacontenttype": "application/json"}, said,
                )  # fmt: skip
                sent = getattr(python_sdk, f"to_{mode}")(given, JSONFormat())
                headers = {**sent.headers, "Authorization": f"Bearer {TOKEN}"}
                async with session.post(votes, data=sent.body, headers=headers) as answer:
                    assert answer.status == 202, await answer.text()
                await approved(at, key)
            assert await at.stop() == 0


def _scheduled(got: list[Got]) -> list[Got]:
    return [one for one in got if any(e["type"].endswith(".scheduled.v1") for e in one.envelopes)]


VERIFIERS = {
    "Go": foreign.go_version("github.com/standard-webhooks/standard-webhooks/libraries"),
    "Java": foreign.java_version("standardwebhooks"),
    "JavaScript": foreign.npm_version("standardwebhooks"),
    "Python": version("standardwebhooks"),
}


async def test_signed_webhooks_are_verified_in_four_languages(tmp_path: Path, proves):
    for name, number in VERIFIERS.items():
        proves(GROUP, f"Standard Webhooks for {name}", number, "verifies webhooks")
    async with receiving() as receiver:
        config, _ = configuration(tmp_path, {"structured": receiver.url}, secret=SECRET)
        async with stage(tmp_path, **config) as at:
            announce(at, "reboot")
            await at.start()
            await until(lambda: _scheduled(receiver.got), "the webhook")
            assert await at.stop() == 0
    [got] = _scheduled(receiver.got)[:1]
    headers = {k.lower(): v for k, v in got.headers.items() if k.lower().startswith("webhook-")}
    genuine: Json = {"secret": SECRET, "headers": headers, "body": got.body.decode()}
    changed = {**genuine, "body": genuine["body"].replace("Reboot", "Freeze")}
    languages: tuple[Language, ...] = ("Go", "Java", "JavaScript")
    for language in languages:
        answers = await foreign.ask(language, "verify", stdin=[genuine, changed])
        assert [answer["verified"] for answer in answers] == [True, False], language
    Webhook(SECRET).verify(got.body.decode(), headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(changed["body"], headers)
