"""A bridge served over real sockets, on a real journal, with any status."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from support.world import INSTANCE, OBSERVER, World, scheduled_event

from bridge.config import Config
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.journal import Journal, Settlement
from bridge.platform import control_address, control_connector
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import SinkStatus, Status
from bridge.web import Served, serve


def config(state: Path, **http: Any) -> Config:
    """Any free port, unless told otherwise."""
    return Config.model_validate({"state_dir": state, "http": {"listen": "127.0.0.1:0", **http}})


@asynccontextmanager
async def runtime(settings: Config) -> AsyncGenerator[Runtime]:
    """A bridge that has just had a good answer, with the sinks `bus` and `pager`."""
    assert settings.state_dir is not None
    journal = Journal(settings.state_dir / "journal.db")
    await journal.open()
    status = Status(
        started=time.monotonic(),
        sinks={
            "bus": SinkStatus("kafka", required=True, state="connected", since=time.time()),
            "pager": SinkStatus("webhook", required=False, state="connected", since=time.time()),
        },
    )
    status.source.last_good = datetime.now(UTC)
    status.source.good_at = status.source.last_poll = time.monotonic()
    status.source.polls = 1
    identity = Identity(settings, journal, INSTANCE)
    await journal.register(list(status.sinks), time.time())
    try:
        yield Runtime(settings, journal, identity, status, "1.2.3")
    finally:
        await journal.close()


@dataclass(slots=True)
class Side:
    """A client for one address of the bridge."""

    session: aiohttp.ClientSession
    base: str

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Status and decoded body."""
        async with self.session.request(method, self.base + path, **more) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if "json" in answer.content_type else text


@dataclass(slots=True)
class ServedBridge:
    """A runtime, its addresses, and clients for both."""

    runtime: Runtime
    served: Served
    control: Side
    http: Side
    probes: Side

    @property
    def journal(self) -> Journal:
        return self.runtime.journal


@asynccontextmanager
async def bridge(settings: Config) -> AsyncGenerator[ServedBridge]:
    assert settings.state_dir is not None
    address = control_address(settings.state_dir)
    async with (
        runtime(settings) as running,
        serve(running, address=address) as served,
        aiohttp.ClientSession(connector=control_connector(address)) as local,
        aiohttp.ClientSession() as remote,
    ):
        yield ServedBridge(
            running,
            served,
            Side(local, "http://bridge"),
            Side(remote, f"http://{served.http}"),
            Side(remote, f"http://{served.probes}"),
        )


async def announce(journal: Journal, event_id: str, **changes: Any) -> list[CloudEvent]:
    """A scheduled event that is seen now, in the journal as the poller puts it there."""
    now = datetime.now(UTC)
    due = now + timedelta(minutes=15)
    world = World(now=now)
    world.state = await journal.load()
    tracked = [known.event for known in world.state.tracked.values()]
    event = scheduled_event(event_id, **{"not_before": due, **changes})
    return await _keep(journal, world, [*tracked, event])


async def end(journal: Journal, event_id: str) -> list[CloudEvent]:
    """The event starts and then ends."""
    world = World(now=datetime.now(UTC))
    world.state = await journal.load()
    known = {key: entry.event for key, entry in world.state.tracked.items()}
    going = replace(known.pop(event_id), status="Started", not_before=None)
    others = list(known.values())
    return [
        *await _keep(journal, world, [*others, going]),
        *await _keep(journal, world, others),
    ]


async def _keep(journal: Journal, world: World, events: list[Any]) -> list[CloudEvent]:
    found = world.see(*events)
    told = [messages.transition(one, OBSERVER, world.facts.now, 1) for one in found]
    await journal.commit(world.state, told, time.time())
    return told


async def kill(journal: Journal, sink: str, event: CloudEvent, reason: str = "too big") -> None:
    """Make a dead letter of it."""
    await journal.settle(sink, [Settlement(event.id, "dead", reason)], time.time())
