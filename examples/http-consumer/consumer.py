"""Drain before the maintenance of one VM, then approve: over HTTP, with Python alone."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener
from uuid import NAMESPACE_URL, uuid5

BRIDGE = os.environ.get("BRIDGE", "http://127.0.0.1:17245")
TOKEN = os.environ.get("SEB_TOKEN", "")
PLACE = Path(os.environ.get("PLACE", "place.txt"))  # the last CloudEvent that we handled
VM = os.environ.get("VM", "vm-0")  # its name in Azure
APPROVER = os.environ.get("APPROVER", "checkout")  # our name in votes
SECONDS = float(os.environ.get("SECONDS", "3"))  # how long draining takes
UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
known: dict[str, tuple] = {}  # the newest life, rank and time of each scheduled event
closed_for: set[str] = set()  # the scheduled events that keep our queue closed
say = partial(print, flush=True)


def hear(event: dict) -> dict | None:
    """Return its data if it is new for our VM: the highest life, then rank, then time."""
    data = event["data"]
    if "rank" not in data:
        return None  # an outcome, a snapshot, an audit
    key, life = data["eventId"], data.get("life", 1)
    place = (life, data["rank"], datetime.fromisoformat(event["time"]))
    ours = VM.casefold() in [name.casefold() for name in data["resources"]]
    if place <= known.get(key, (0,)) or not (ours or key in closed_for):
        return None  # a copy, an older state, or about other VMs
    known[key] = place
    if len(known) > 1000:
        del known[next(iter(known))]
    late = data["approveBy"] and datetime.fromisoformat(data["approveBy"]) < datetime.now(UTC)
    due = ours and data["approvable"] and not late
    name = uuid5(NAMESPACE_URL, f"{event['id']}/{APPROVER}/{VM}")  # the same after a restart
    return {**data, "over": data["rank"] > 2 or not ours, "due": due, "id": str(name)}


def work(news: dict) -> dict | None:
    """Drain or open the queue; return the vote to cast, if any."""
    key, drill = news["eventId"], news["drill"]
    say("a drill:" if drill else "news:", news["eventType"], key, news["status"])
    if news["over"]:
        closed_for.discard(key)
        say("the queue is", "closed" if closed_for else "open")
    if not news["due"]:
        return None
    for left in () if drill or closed_for else (3, 2, 1):  # your own work goes here
        say("draining:", left, "orders left")
        time.sleep(SECONDS / 3)
    closed_for.update([] if drill else [key])
    said = {"eventId": key, "approver": APPROVER, "resource": VM, "id": news["id"]}
    said["seen"] = news.get("state")  # we are ready for this, not for anything worse
    return {**said, "decision": "approve", "reason": "a drill" if drill else "drained"}


def ask(path: str, body: dict | None = None, **headers: str) -> HTTPResponse:
    usual = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = Request(BRIDGE + path, data, {**usual, **headers})
    return build_opener(ProxyHandler({})).open(request, timeout=45)  # a comment comes every 15 s


def stream(after: str) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the data of each Server-Sent Event that holds a CloudEvent."""
    key, kind = after, b""
    with ask("/api/v1/stream", **{"Last-Event-ID": after}) as answer:
        while line := answer.readline(1 << 20):
            name, _, value = line.strip().partition(b": ")
            key = value.decode() if name == b"id" else key
            kind = value if name == b"event" else kind if name else b""
            if name == b"data" and kind != b"connected":
                yield key, value


def approve(vote: dict) -> None:
    """Send it until the bridge has recorded it, or says why it does not count."""
    for _ in range(150):
        try:
            with ask("/api/v1/approvals", vote) as answer:
                return say("ready, and said so:", json.load(answer)["outcomes"][0]["outcome"])
        except HTTPError as error:
            if error.code not in {429, 503}:
                return say("refused:", error.read(10_000).decode())
        except (OSError, HTTPException) as error:
            say("the bridge is away:", error)
        time.sleep(2)
    raise SystemExit("the bridge did not take our vote; started again, we hear it all again")


def consume() -> None:
    while True:
        try:
            for key, data in stream(PLACE.read_text() if PLACE.exists() else "0"):
                try:
                    news = hear(json.loads(data))
                except UNREADABLE:
                    news = say("skipped: cannot read", key)
                if news and (vote := work(news)):
                    approve(vote)
                PLACE.write_text(key)  # after the work: a crash repeats it
        except (OSError, HTTPException) as error:
            say("no stream:", error)
        time.sleep(2)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        consume()
