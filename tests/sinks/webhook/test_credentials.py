"""Who we are to a receiver: one header, from files as they are now, never repeated."""

import pytest
import standardwebhooks
from aiohttp import web
from support.cloudevents import batch, make
from support.token_server import token_server
from support.webhook_receiver import says
from support.webhook_sending import attempt, session

from bridge.plugins import Unavailable

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "QUJD" * 8


async def test_a_rotated_key_is_used_with_the_next_batch(receiver, tmp_path):
    file = tmp_path / "key"
    file.write_text(SECRET)
    async with session(receiver, secret={"file": str(file)}) as send:
        assert await send([make(1)]) == [None]
        file.write_text(OTHER + "\n")
        assert await send([make(2)]) == [None]
        file.write_text("nonsense")
        [problem] = await send([make(3)])
    assert str(problem).startswith("secret: a key starts with whsec_")
    assert "nonsense" not in str(problem)
    for key, got in zip((SECRET, OTHER), receiver.got, strict=True):
        standardwebhooks.Webhook(key).verify(
            got.body, {name.lower(): value for name, value in got.headers.items()}
        )


@pytest.mark.parametrize(
    ("keys", "header"),
    [
        ({"bearer": "t0p"}, "Bearer t0p"),
        ({"basic": {"username": "änn", "password": "p:w"}}, "Basic w6RubjpwOnc="),
        ({"headers": {"Authorization": "Splunk x y"}}, "Splunk x y"),
    ],
)
async def test_credentials_are_one_header(receiver, keys, header):
    assert await attempt(receiver, **keys) == [None]
    assert receiver.got[0].headers["Authorization"] == header
    assert "Cache-Control" not in receiver.got[0].headers


async def test_a_token_in_the_query_is_kept_from_caches(receiver):
    assert await attempt(receiver, url=f"{receiver.url}?access_token=x") == [None]
    assert receiver.got[0].headers["Cache-Control"] == "no-store"


async def test_headers_may_come_from_files_which_cannot_break_out_of_them(receiver, tmp_path):
    file = tmp_path / "header"
    file.write_text("one\n")
    keys = {"X-Team": "ops", "X-Key": {"file": str(file)}}
    async with session(receiver, headers=keys) as send:
        assert await send([make(1)]) == [None]
        file.write_text("s3cret\r\nX-Evil: 1")
        [problem] = await send([make(2)])
    [got] = receiver.got
    assert (got.headers["X-Team"], got.headers["X-Key"]) == ("ops", "one")
    assert type(problem) is Unavailable
    assert str(problem).startswith("header X-Key must be visible ASCII")
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize(
    ("secret", "keys"),
    [
        (SECRET, {"secret": SECRET}),
        ("rout1ng-k3y", {"format": {"type": "pagerduty", "routing_key": "rout1ng-k3y"}}),
        ("B0000000-token", {"url": "{hook}/services/B0000000-token/?a=b"}),
    ],
    ids=["signing key", "key in the body", "end of the path"],
)
async def test_whatever_secret_an_answer_repeats_is_left_out(receiver, secret, keys):
    receiver.usual = says(400, f"no access with {secret} here")
    if "url" in keys:
        keys = {"url": keys["url"].replace("{hook}", receiver.url)}
    [said] = await attempt(receiver, **keys)
    assert "it answered 400 (no access with *** here)" in str(said)


async def test_without_a_token_nothing_is_sent(receiver):
    async with token_server(says_no) as server:
        oauth = {"token_url": server.url, "client_id": "a", "client_secret": "b"}
        results = await attempt(receiver, batch(2), oauth=oauth)
    assert receiver.got == []
    assert all("identity provider" in str(result) for result in results)


async def says_no() -> web.Response:
    return web.Response(status=403)
