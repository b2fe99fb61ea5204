"""Drain before the maintenance of one VM, then approve: over MQTT, both ways."""

import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from queue import Queue
from uuid import NAMESPACE_URL, uuid5

from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTv5, MQTTv311
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SERVER = os.environ.get("SERVER", "127.0.0.1:1883")
EVENTS = os.environ.get("EVENTS", "azure/scheduled-events/events/#")
APPROVALS = os.environ.get("APPROVALS", "azure/scheduled-events/approvals")
FIVE = os.environ.get("MQTT", "5") == "5"  # else 3.1.1
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


def connect(heard: Queue[MQTTMessage]) -> Client:
    """Connect to a session that the server keeps while we are away."""
    version = {"protocol": MQTTv5} if FIVE else {"protocol": MQTTv311, "clean_session": False}
    api = CallbackAPIVersion.VERSION2
    client = Client(api, f"{APPROVER}-{VM}", manual_ack=True, **version)
    client.on_connect = lambda *_: client.subscribe(EVENTS, qos=1)
    client.on_subscribe = lambda *told: say("listening to", EVENTS, *told[3])
    client.on_message = lambda _, __, message: heard.put(message)
    asked = Properties(PacketTypes.CONNECT)
    asked.SessionExpiryInterval, asked.ReceiveMaximum = 86400, 20
    session = {"clean_start": False, "properties": asked} if FIVE else {}
    host, _, port = SERVER.rpartition(":")
    client.connect_async(host, int(port), **session)
    client.loop_start()  # a thread that reconnects by itself
    return client


def answer(client: Client, message: MQTTMessage, vote: dict) -> None:
    """Publish to the Response Topic, with its Correlation Data, if the bridge names one."""
    topic, asked, properties = APPROVALS, message.properties, None
    if hasattr(asked, "ResponseTopic"):
        topic, properties = asked.ResponseTopic, Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = asked.CorrelationData
    sent = client.publish(topic, json.dumps(vote), qos=1, properties=properties)
    with suppress(RuntimeError):  # the connection is gone
        sent.wait_for_publish(30)
        if sent.is_published():
            return say("ready, and said so on", topic)
    raise SystemExit("the server did not take our vote; started again, we hear it all again")


def consume() -> None:
    heard: Queue[MQTTMessage] = Queue()
    client = connect(heard)
    while message := heard.get():
        try:  # an empty message only removes what was retained
            news = hear(json.loads(message.payload)) if message.payload else None
        except UNREADABLE:
            news = say("skipped: cannot read what is on", message.topic)
        if news and (vote := work(news)):
            answer(client, message, vote)
        client.ack(message.mid, message.qos)  # after the work: a crash repeats it


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        consume()
