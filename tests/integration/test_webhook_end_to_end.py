"""Simulator, bridge and a webhook's receiver on its worst days, as real processes over real HTTP."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from functools import partial
from pathlib import Path

import standardwebhooks
from aiohttp import web
from support.bridge_process import Stage, stage
from support.kafka_stage import seb
from support.webhook_receiver import Receiver, after, raw, receiving, says

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TRANSITIONS = ("scheduled", "started", "completed")


@contextlib.asynccontextmanager
async def posting(folder: Path, receiver: Receiver) -> AsyncIterator[Stage]:
    pager = {
        "type": "webhook",
        "url": receiver.url + "?access_token=t0p-s3cret",
        "secret": SECRET,
        "only": {"types": [f"azure.scheduledevents.{each}.v1" for each in TRANSITIONS]},
        "retry": {"timeout": "1s"},
    }
    async with stage(folder, quick=True, sinks={"pager": pager}, stop_grace="1s") as at:
        await at.start()
        await at.polled()
        yield at


async def announce(at: Stage, *names: str) -> list[str]:
    """Events that the bridge has seen, and that wait; their EventIds."""
    made = [
        at.world.create(name=name, type="Reboot", notice="10m", started_for="10m") for name in names
    ]
    await at.polled()
    return [each.event.key for each in made]


async def go_ahead(at: Stage, *names: str) -> None:
    """The events start, and the bridge has seen it."""
    for name in names:
        at.world.start(name)
    await at.polled()


async def in_a_second(request: web.Request) -> web.StreamResponse:
    date = formatdate(time.time() + 1, usegmt=True)
    return await says(503, Retry_After=date)(request)


def story(receiver: Receiver, key: str) -> list[str]:
    """What was taken about one scheduled event, first arrivals only, in their order."""
    types = {each["id"]: each["type"] for each in receiver.taken if each["subject"] == key}
    return [each.split(".")[2] for each in types.values()]


def told(receiver: Receiver, key: str) -> bool:
    return len(story(receiver, key)) == len(TRANSITIONS)


async def test_every_transition_arrives_in_order_whatever_the_receiver_goes_through(
    tmp_path: Path,
):
    async with receiving() as receiver, posting(tmp_path, receiver) as at:
        receiver.answers += [
            says(500),
            raw(b""),
            raw(b"HTTP/1.1 200 O"),
            after(asyncio.Event()),
            says(429, Retry_After="1"),
            in_a_second,
        ]
        names = ["a", "b", "c"]
        keys = await announce(at, *names)
        await go_ahead(at, *names)
        for name in names:
            at.world.complete(name)
        for key in keys:
            await at.until(partial(told, receiver, key), f"all of {key}")
        assert await at.stop() == 0
        assert not receiver.answers
        assert at.said("bridge.stopped")[0]["undelivered"] == 0
        assert "t0p-s3cret" not in at.output()
    assert [story(receiver, key) for key in keys] == [list(TRANSITIONS)] * 3
    for got in receiver.got:
        headers = {name.lower(): value for name, value in got.headers.items()}
        standardwebhooks.Webhook(SECRET).verify(got.body, headers)
        assert headers["webhook-id"] == got.envelopes[0]["id"]


async def test_a_redirect_is_a_dead_letter_and_a_retired_receiver_stops_the_sink(tmp_path: Path):
    async with (
        receiving() as receiver,
        receiving() as elsewhere,
        posting(tmp_path, receiver) as at,
    ):
        receiver.answers.append(says(307, Location=elsewhere.url + "?q=t0p-s3cret"))
        [moved] = await announce(at, "moved")
        await go_ahead(at, "moved")
        await at.until(lambda: story(receiver, moved) == ["started"], "what came after it")
        [dead] = at.said("sink.dead_letter")
        assert "it answered 307 and points to 127.0.0.1;" in dead["reason"]
        await seb(at, "dead-letters", "replay", "--all")
        await at.until(lambda: "scheduled" in story(receiver, moved), "the dead letter")

        receiver.usual = says(410, "gone fishing")
        await announce(at, "unwanted")
        await at.until_said("sink.stopped")
        asked = len(receiver.got)
        [kept] = await announce(at, "kept")
        assert len(receiver.got) == asked
        assert "gone fishing" in at.said("sink.stopped")[0]["error"]
        assert await at.stop() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] == 2

        receiver.usual = says(204)
        await at.start()
        await at.until(lambda: story(receiver, kept), "what was kept")
        assert await at.stop() == 0
        assert elsewhere.got == elsewhere.asked == []
        assert "t0p-s3cret" not in at.output()


async def test_an_eviction_arrives_although_the_receiver_asks_for_an_hour_and_a_kill_comes_between(
    tmp_path: Path,
):
    async with receiving() as receiver, posting(tmp_path, receiver) as at:
        receiver.answers += [says(429, Retry_After="3600"), says(429, Retry_After="3600")]
        made = at.world.create(name="evicted", type="Preempt", notice="24s")
        await at.until(lambda: len(receiver.answers) == 1, "the first refusal")
        await at.kill()
        await at.start()
        key, due = made.event.key, made.event.not_before
        await at.until(lambda: story(receiver, key)[:1] == ["scheduled"], "the announcement")
        assert due is not None
        assert time.time() < due.timestamp()
        assert await at.stop() == 0
