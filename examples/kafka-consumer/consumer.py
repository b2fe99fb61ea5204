"""Drain before the maintenance of one VM, then approve: over Kafka, both ways."""

import asyncio
import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from uuid import NAMESPACE_URL, uuid5

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord

SERVERS = os.environ.get("SERVERS", "127.0.0.1:9092")
EVENTS = os.environ.get("EVENTS", "azure.scheduled-events")
APPROVALS = os.environ.get("APPROVALS", "azure.scheduled-events.approvals")
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


def read(record: ConsumerRecord) -> dict:
    """A CloudEvent in structured mode is the value; in binary mode its attributes are headers."""
    headers = {name: value.decode() for name, value in record.headers}
    if headers.get("content-type", "").startswith("application/cloudevents"):
        return json.loads(record.value)
    attributes = {name.removeprefix("ce_"): value for name, value in headers.items()}
    return {**attributes, "data": json.loads(record.value)}


async def consume() -> None:
    reader = AIOKafkaConsumer(
        EVENTS,
        bootstrap_servers=SERVERS,
        group_id=f"{APPROVER}-{VM}",  # one group per VM, because each reads everything
        group_instance_id="the-only-one",  # a restart need not wait for the old session
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with reader, AIOKafkaProducer(bootstrap_servers=SERVERS, acks="all") as writer:
        say("listening to", EVENTS)
        async for record in reader:
            try:
                news = hear(read(record))
            except UNREADABLE:
                news = say("skipped: cannot read offset", record.offset)
            if news and (vote := await asyncio.to_thread(work, news)):
                await writer.send_and_wait(APPROVALS, json.dumps(vote).encode())
                say("ready, and said so on", APPROVALS)
            await reader.commit()  # after the work: a crash repeats it


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(consume())
