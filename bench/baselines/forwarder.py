"""The least that forwards durably: poll, parse, one commit, a raw send, a commit that settles.

`python -m bench.baselines.forwarder URL SINK BODIES FOLDER` has the settings of one sink, as JSON,
and a file with one CloudEvent on each line. It writes no CloudEvents itself: for every event that
is new, changed or gone it takes the next line.
"""

import asyncio
import itertools
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from bench.baselines.senders import SENDERS, Send

_INTERVAL = 0.2
_TABLES = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE document(id INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE outbox(id INTEGER PRIMARY KEY, body BLOB);
"""
Known = dict[str, str]


def changes(before: Known, document: dict[str, Any]) -> tuple[Known, int]:
    """The present events with their status, and how many of them changed."""
    now = {event["EventId"]: event["EventStatus"] for event in document["Events"]}
    return now, len({key for key, _ in before.items() ^ now.items()})


def record(database: sqlite3.Connection, text: str, bodies: list[bytes]) -> None:
    """One durable commit: the document, and what has to be sent."""
    with database:
        database.execute("INSERT OR REPLACE INTO document VALUES (1, ?)", (text,))
        database.executemany("INSERT INTO outbox(body) VALUES (?)", ((body,) for body in bodies))


def settle(database: sqlite3.Connection) -> None:
    with database:
        database.execute("DELETE FROM outbox")


async def forward(
    url: str, send: Send, lines: Iterator[bytes], database: sqlite3.Connection
) -> None:
    known: Known = {}
    async with aiohttp.ClientSession(headers={"Metadata": "true"}) as http:
        while True:
            async with http.get(f"{url}/metadata/scheduledevents?api-version=2020-07-01") as answer:
                text = await answer.text()
            known, count = changes(known, json.loads(text))
            if count:
                bodies = list(itertools.islice(lines, count))
                record(database, text, bodies)
                await send(bodies)
                settle(database)
            await asyncio.sleep(_INTERVAL)


async def main(url: str, sink: dict[str, Any], bodies: Path, folder: Path) -> None:
    lines = itertools.cycle(bodies.read_bytes().splitlines())
    database = sqlite3.connect(folder / "baseline.sqlite")
    database.executescript(_TABLES)
    await forward(url, await SENDERS[sink["type"]](sink), lines, database)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])))
