"""A bridge process between the simulator and Kafka, with kcat at the other end."""

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

from support import judge
from support.bridge_process import PATIENCE, Stage, stage
from support.cloudevents import unbound
from support.kcat import kcat, kcat_write

Json = dict[str, Any]


def kafka_sink(servers: str, topic: str, **more: Any) -> Json:
    return {"type": "kafka", "bootstrap_servers": servers.split(","), "topic": topic} | more


def approvals(topic: str, **more: Any) -> Json:
    """From the sink `bus`, by its connection."""
    return {"from": {"votes": {"sink": "bus", "topic": topic, "trust": "transport"}}} | more


@contextlib.asynccontextmanager
async def kafka_stage(folder: Path, servers: str, **topics: str) -> AsyncGenerator[Stage]:
    """One sink `bus`, and approvals when there is a topic for them."""
    config: Json = {"sinks": {"bus": kafka_sink(servers, topics["events"])}}
    if "approvals" in topics:
        config["approvals"] = approvals(topics["approvals"])
    async with stage(folder, **config, stop_grace="5s") as made:
        yield made


class Topic:
    """What kcat reads from a topic, from its beginning to its current end."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name = servers, name

    async def records(self) -> list[Json]:
        reading = ["-C", "-e", "-q", "-J", "-o", "beginning", "-X", "fetch.wait.max.ms=10"]
        out = await kcat("-b", self.servers, "-t", self.name, *reading)
        return [json.loads(line) for line in out.splitlines()]

    async def until(self, condition: Callable[[list[Json]], Any], what: str) -> list[Json]:
        give_up = time.monotonic() + PATIENCE
        while True:
            records = await self.records()
            if condition(records):
                return records
            assert time.monotonic() < give_up, f"waited in vain for {what}: {kinds(records)}"
            await asyncio.sleep(0.1)

    async def until_told(self, *expected: str, of: str | None = None) -> dict[str, Json]:
        """The first record of each kind, once all are there."""

        def found(records: list[Json]) -> dict[str, Json]:
            return {kind(each): each for each in reversed(records) if of in {None, each["key"]}}

        records = await self.until(lambda got: found(got).keys() >= {*expected}, str(expected))
        return {each: found(records)[each] for each in expected}

    async def write(self, value: Json | bytes) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        await kcat_write(self.servers, self.name, body)


def headers(record: Json) -> dict[str, str]:
    names, values = record["headers"][::2], record["headers"][1::2]
    assert len(set(names)) == len(names), "a header stands twice"
    return dict(zip(names, values, strict=True))


def envelope(record: Json) -> Json:
    """The CloudEvent in it, as the Kafka binding has it."""
    found = headers(record)
    if found["content-type"].startswith("application/cloudevents"):
        return json.loads(record["payload"])
    named = {name.removeprefix("ce_"): v for name, v in found.items() if name.startswith("ce_")}
    return unbound(named, found["content-type"], record["payload"])


def kind(record: Json) -> str:
    return judge.kind(envelope(record))


def kinds(records: list[Json]) -> list[str]:
    return [kind(record) for record in records]


def checkpoints(at: Stage) -> dict[str, str]:
    """The next offset of each partition, without the cluster and the time of the last record."""
    with contextlib.closing(sqlite3.connect(f"file:{at.journal}?mode=ro", uri=True)) as db:
        return next_offsets(dict(_rows(db)))


def next_offsets(kept: Json) -> dict[str, str]:
    return {name.partition("/")[2]: value.partition("@")[0] for name, value in kept.items()}


def _rows(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    yield from db.execute("SELECT name, value FROM checkpoint")


async def seb(at: Stage, *words: str) -> Any:
    """The JSON output of a command, once the running bridge answers."""
    async with asyncio.timeout(PATIENCE):
        while not (said := (await at.seb(*words, "--json"))[1]):
            await asyncio.sleep(0.05)
    return json.loads(said)
