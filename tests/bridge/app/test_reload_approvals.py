"""A reload while a StartRequest waits: the new rules decide, and no request is lost or repeated."""

import asyncio
from contextlib import asynccontextmanager

from support.ballots import delivery
from support.running_app import reload, serving
from support.until import until

from bridge.app.lifecycle import App
from bridge.platform import control_address


def posts(simulator):
    return [one for one in simulator.truth if one["what"] == "approval"]


async def vote(app: App, key: str, who: str, decision: str = "approve") -> str:
    assert app.runtime.take_local is not None
    said = delivery(key, decision=decision)
    [answer] = await app.runtime.take_local(said, "control", who)
    return answer.outcome


@asynccontextmanager
async def while_it_waits(app: App, simulator, key: str):
    """Azure is to be notified, and a slow poll is in flight."""
    assert app.reload is not None
    endpoint = app.reload.engine._endpoint
    slow = simulator.world.fault("delay", methods=["GET"], delay="2s", count=1)
    await until(lambda: slow.left == 0)
    voting = asyncio.create_task(vote(app, key, "orders"))
    await until(lambda: endpoint.turn._waiters)
    yield
    await voting


async def begun(app: App, simulator) -> str:
    event = simulator.world.create(type="Reboot", notice="1h", starts_after_approval="1h")

    async def known():
        return event.event_id in (await app.runtime.journal.load()).tracked

    await until(known)
    return str(event.event_id)


@asynccontextmanager
async def unfinished(app: App):
    """A request on the control socket whose body does not come."""
    _, writer = await asyncio.open_unix_connection(control_address(app.state_dir))
    writer.write(b"POST /api/v1/drills HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
    await writer.drain()
    yield
    writer.close()


async def test_a_dry_run_that_was_audited_while_a_request_waited_stops_it(place, simulator, caplog):
    place.write(approvals={"require": "any"})
    async with serving(place) as app:
        key = await begun(app, simulator)
        async with while_it_waits(app, simulator, key):
            place.write(approvals={"require": "any", "dry_run": True})
            assert await reload(app, caplog) == "configuration.loaded"
        polls = app.runtime.status.source.polls
        await until(lambda: app.runtime.status.source.polls > polls + 1)
    assert posts(simulator) == []
    assert "approval.granted" not in place.told("left")


async def test_a_request_that_waits_while_the_poller_is_replaced_is_judged_anew(
    place, simulator, caplog
):
    place.write(approvals={"require": "any"})
    async with serving(place) as app:
        key = await begun(app, simulator)
        async with while_it_waits(app, simulator, key):
            assert await vote(app, key, "night-shift", "hold") == "recorded"
            place.write(source={**place.keys["source"], "poll_interval": "300ms"})
            assert await reload(app, caplog) == "configuration.loaded"
        polls = app.runtime.status.source.polls
        await until(lambda: app.runtime.status.source.polls > polls + 1)
        assert posts(simulator) == []
        await vote(app, key, "night-shift", "release")
        await until(lambda: "approval.granted" in place.told("left"))
    assert [one["status"] for one in posts(simulator)] == [200]


async def test_nothing_is_approved_by_the_rules_of_a_reload_that_fails(
    place, simulator, caplog, taken
):
    """A request without its body keeps the old listeners busy for a moment."""
    place.write(approvals={"require": {"count": 2}})
    async with serving(place) as app:
        key = await begun(app, simulator)
        assert await vote(app, key, "uid 0") == "recorded"
        async with unfinished(app):
            place.write(approvals={"require": "any"}, http={"listen": f"127.0.0.1:{taken}"})
            reloading = asyncio.create_task(reload(app, caplog))
            while not reloading.done():
                app.runtime.journal.announce()
                await asyncio.sleep(0.01)
            assert await reloading == "configuration.rejected"
    assert posts(simulator) == []
    assert "approval.granted" not in place.told("left")
