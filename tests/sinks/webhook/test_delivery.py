"""One session with a receiver that has good and bad days, over real HTTP."""

import asyncio
import time
from email.utils import formatdate

import pytest
import standardwebhooks
from support.cloudevents import batch, make
from support.results import pause_of
from support.sink_contract import Leftovers, cancel
from support.token_server import granted, token_server
from support.until import until
from support.webhook_receiver import after, says
from support.webhook_sending import attempt, session

from bridge.plugins import Gone, Rejected, Unavailable

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "QUJD" * 8


async def test_what_is_signed_verifies_with_the_public_library(receiver):
    [sent] = batch(1)
    assert await attempt(receiver, [sent], secret=[SECRET, OTHER]) == [None]
    [got] = receiver.got
    assert got.headers["webhook-id"] == sent.id
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 30
    for key in (SECRET, OTHER):
        headers = {name.lower(): value for name, value in got.headers.items()}
        standardwebhooks.Webhook(key).verify(got.body, headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(SECRET).verify(got.body + b" ", headers)


async def test_each_attempt_is_signed_for_its_own_time_under_the_same_id(receiver, monkeypatch):
    [sent] = batch(1)
    receiver.answers.append(says(500))
    async with session(receiver, secret=SECRET) as send:
        assert type((await send([sent]))[0]) is Unavailable
        later = time.time() + 90
        monkeypatch.setattr("sinks.webhook.delivery.time.time", lambda: later)
        assert await send([sent]) == [None]
    first, second = receiver.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == sent.id
    assert int(second.headers["webhook-timestamp"]) == int(later)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


async def test_what_is_not_signed_has_no_such_headers(receiver):
    await attempt(receiver)
    assert not [name for name in receiver.got[0].headers if name.lower().startswith("webhook-")]


async def test_a_format_is_posted_with_its_own_type(receiver):
    assert await attempt(receiver, [make()], format="cloudevents") == [None]
    assert receiver.got[0].headers["Content-Type"].startswith("application/cloudevents+json")


async def test_a_few_go_at_the_same_time_and_never_more(receiver):
    gate = asyncio.Event()
    receiver.usual = after(gate)
    async with session(receiver, concurrency=3) as send:
        sending = asyncio.ensure_future(send(batch(10)))
        await until(lambda: receiver.at_once == 3)
        await asyncio.sleep(0.05)
        gate.set()
        assert await sending == [None] * 10
    assert receiver.most_at_once == 3


async def test_429_ends_the_batch_and_the_bridge_decides_when_the_next_one_goes(receiver):
    receiver.answers.append(says(429, "slow down", Retry_After="30"))
    async with session(receiver, concurrency=1) as send:
        results = await send(batch(5))
        assert len(receiver.got) == 1
        assert await send([make(6)]) == [None]
    assert [pause_of(result) for result in results] == [30.0] * 5
    assert "429 (slow down) and asks us to wait 30 s" in str(results[-1])


async def test_429_without_a_time_asks_for_none(receiver):
    receiver.answers.append(says(429))
    async with session(receiver, concurrency=1) as send:
        results = await send(batch(3))
    assert len(receiver.got) == 1
    assert [str(each) for each in results] == ["it answered 429"] * 3
    assert {getattr(each, "retry_after", 0) for each in results} == {None}


async def test_after_the_pause_it_goes_on(receiver):
    receiver.answers.append(says(503, Retry_After="1"))
    async with session(receiver) as send:
        [paused] = await send([make()])
        assert pause_of(paused) == 1.0
        await asyncio.sleep(pause_of(paused))
        assert await send([make()]) == [None]


async def test_a_pause_until_a_date(receiver):
    receiver.answers.append(says(429, Retry_After=formatdate(time.time() + 100, usegmt=True)))
    [result] = await attempt(receiver)
    assert 90 < pause_of(result) <= 101


async def test_a_retired_receiver_gets_nothing_more(receiver):
    receiver.usual = says(410)
    async with session(receiver, concurrency=1) as send:
        results = [*await send(batch(3)), *await send(batch(1, first=4))]
    assert [type(result) for result in results] == [Gone] * 4
    assert len(receiver.got) == 1


async def test_refused_credentials_stop_the_batch_and_the_next_one_tries_again(receiver):
    receiver.answers.append(says(401, "who is t0p-s3cret?"))
    async with session(receiver, concurrency=1, bearer="t0p-s3cret") as send:
        results = await send(batch(3))
        assert len(receiver.got) == 1
        assert await send(batch(3)) == [None] * 3
    assert [type(result) for result in results] == [Unavailable] * 3
    assert isinstance(results[0], Unavailable)
    assert "(who is ***?)" in str(results[0])
    assert results[0].retry_after is None


async def test_a_refused_token_is_requested_again_once(receiver):
    tokens = iter(["first", "second"])
    async with token_server(lambda: granted(next(tokens), expires_in=3600)) as server:
        oauth = {"token_url": server.url, "client_id": "a", "client_secret": "b"}
        receiver.answers.append(says(401))
        async with session(receiver, oauth=oauth, concurrency=8) as send:
            first = await send(batch(1))
            second = await send(batch(20))
    assert type(first[0]) is Unavailable
    assert second == [None] * 20
    shown = [got.headers["Authorization"] for got in receiver.got]
    assert shown == ["Bearer first"] + ["Bearer second"] * 20
    assert len(server.asked) == 2


async def test_a_silent_receiver_is_given_up_before_the_bridge_does_and_others_count(receiver):
    never = asyncio.Event()
    receiver.answers.append(after(never))
    sent = batch(3)
    async with session(receiver, concurrency=2, retry={"timeout": "500ms"}) as send:
        results = await send(sent)
    assert type(results[0]) is Unavailable
    assert "no answer within 0.45 s" in str(results[0])
    assert results[1:] == [None, None]
    assert receiver.ids() == [sent[1].id, sent[2].id]


async def test_cancelling_hangs_up(receiver):
    receiver.usual = after(asyncio.Event())
    before = Leftovers.now()
    async with session(receiver) as send:
        sending = asyncio.ensure_future(send(batch(2)))
        await until(lambda: receiver.at_once == 2)
        await cancel(sending)
        await until(lambda: receiver.at_once == 0)  # the far side saw its client go
    await before.settled()


async def test_a_connection_is_used_again_and_one_that_was_closed_is_not(receiver):
    async with session(receiver, concurrency=1) as send:
        assert await send(batch(5)) == [None] * 5
        await receiver.down()
        [problem] = await send(batch(1))
        await receiver.up()
        assert await send(batch(1)) == [None]
    assert str(problem) == f"http://127.0.0.1:{receiver.port}: nothing listens there"


async def test_in_a_batch_one_that_is_refused_takes_no_neighbor_along(receiver):
    sent = batch(7)
    receiver.refused = {sent[4].id}
    results = await attempt(receiver, sent, mode="batch", batch_size=3)
    assert [type(result) for result in results if result is not None] == [Rejected]
    assert results[4] is not None
    assert sorted(receiver.ids()) == sorted(each.id for each in sent if each is not sent[4])


async def test_a_url_that_changes_in_its_file_is_used_immediately(receiver, tmp_path):
    file = tmp_path / "url"
    file.write_text(receiver.url)
    async with session(receiver, url={"file": str(file)}) as send:
        assert await send([make(1)]) == [None]
        file.write_text(receiver.url + "/{vm_name}")
        assert await send([make(2)]) == [None]
    assert [got.path for got in receiver.got] == ["/hook", "/hook/web-1"]
