"""A client that listens: the server keeps its session, and sends no more than it can take."""

import asyncio
import json
import re
import threading
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from paho.mqtt.client import MQTTMessage, topic_matches_sub

from bridge.plugins import Delivery, Listening, Unavailable
from sinks.mqtt.client import Client
from sinks.mqtt.connection import Door
from sinks.mqtt.errors import SLOW, subscription_refused
from sinks.mqtt.network import Terms

_EVENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_STRUCTURED = "application/cloudevents"
_SIGNING = "webhook-"

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a message says; the properties are those of MQTT 5."""

    payload: bytes
    content_type: str | None = None
    user: Sequence[tuple[str, str]] = ()
    correlation: bytes | None = None

    @property
    def is_binary(self) -> bool:
        """Whether its user properties are the attributes of a CloudEvent, and all of them."""
        structured = (self.content_type or "").strip().lower().startswith(_STRUCTURED)
        return not structured and any(name.lower() == "specversion" for name, _ in self.user)


def headers_of(arrival: Arrival) -> Headers:
    """In the words of `bridge`'s reader; what stands twice goes on standing twice.

    MQTT's binding gives attributes no prefix, so any user property could be one: they are
    attributes only where one of them says so.
    """
    found: Headers = []
    binary = arrival.is_binary
    if arrival.content_type is not None:
        found.append(("content-type", arrival.content_type.encode()))
    for name, value in arrival.user:
        if name.lower().startswith(_SIGNING):
            found.append((name.lower(), value.encode()))
        elif binary:
            found.append((f"ce_{name.lower()}", value.encode()))
    return found


def body_of(arrival: Arrival, *, signed: bool) -> bytes:
    """The payload; an empty one that answers our CloudEvent approves, unless it must be signed.

    The EventId is the Correlation Data of what the sink publishes, so any request-response
    library of MQTT 5 sends it back by itself.
    """
    if arrival.payload or signed or arrival.correlation is None or arrival.is_binary:
        return arrival.payload
    event_id = arrival.correlation.decode("ascii", "replace")
    if not _EVENT_ID.fullmatch(event_id):
        return arrival.payload
    return json.dumps({"eventId": event_id}).encode()


WINDOW = 10
"""How many messages are here at most; the others wait at the server, or in the socket."""
LARGEST = 256 * 1024
"""The largest packet that servers may send us, and what we keep of one that is larger: four times
what is read."""
PROBE = 5.0
"""How often it is looked whether the server still answers, in seconds."""
_LOOK = 0.1


class Ear(Client):
    """One that may keep the server waiting: no room, no reading, so that a flood stays outside."""

    def __init__(self, door: Door, terms: Terms) -> None:
        super().__init__(door, terms, heard=self._arrive)
        self.arrived: deque[MQTTMessage] = deque()
        self.news = asyncio.Event()
        self.lost.add_done_callback(lambda _: self.news.set())
        self._room = threading.Semaphore(WINDOW)
        self._leaving = False

    def make_room(self) -> None:
        self._room.release()

    def answers(self) -> bool:
        """Whether the server says something as often as it should."""
        return self._network.overdue() < PROBE

    async def close(self) -> None:
        """What has not been taken stays unacknowledged, and comes again."""
        self._leaving = True
        await super().close()

    def _arrive(self, message: MQTTMessage) -> None:
        self.arrived.append(message)
        self.news.set()

    def _on_message(self, _c: Any, _u: Any, message: MQTTMessage) -> None:
        """In paho's thread, which reads nothing more before this returns: not all servers count."""
        while not (self._leaving or self.lost.done()):
            if self._room.acquire(timeout=_LOOK):
                super()._on_message(_c, _u, message)
                return


class Seat:
    """Where one bridge listens. `topic` may hold wildcards, and be shared."""

    def __init__(self, door: Door, topic: str, expiry: int, *, signed: bool) -> None:
        self._door, self._topic, self._signed = door, topic, signed
        self._filter = unshared(topic)
        terms = Terms(clean=False, expiry=expiry, receive_maximum=WINDOW, largest=LARGEST)
        self._ear = Ear(door, terms)
        self._asking: asyncio.Task[None] | None = None

    async def take(self) -> None:
        """Raises `Unavailable` when we are not let in, or the topic is not for us to read.

        What waited in the session comes first, and may have to be taken before the answer to our
        subscription can be read; `deliveries` looks at it then.
        """
        ear = self._ear
        await ear.connect()
        self._asking = asyncio.create_task(self._subscribe())
        self._asking.add_done_callback(lambda _: ear.news.set())
        while not (self._asking.done() or ear.arrived):
            ear.news.clear()
            await ear.news.wait()
        self._check_answer()

    def _check_answer(self) -> None:
        if self._asking is not None and self._asking.done():
            self._asking.result()

    async def _subscribe(self) -> None:
        try:
            async with asyncio.timeout(self._door.patience):
                # Each time: the topic may be another than that of the session.
                (answer,) = await self._ear.subscribe({self._topic: 1})
        except TimeoutError:
            raise Unavailable(f"{self._door.server}: no answer to our subscription") from None
        if not answer.ok:
            raise subscription_refused(answer.code, self._topic, answer.said)
        if answer.code == 0:
            why = "the server grants no QoS 1, so approvals could be lost on the way"
            raise Unavailable(f"topic {self._topic}: {why}", retry_after=SLOW)

    async def leave(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self._ear.close()

    async def deliveries(self, listening: Listening) -> AsyncGenerator[Delivery]:
        """Never ends. Raises `Unavailable` when the connection is gone and all of it is taken."""
        while True:
            yield self._delivery(await self._next(listening))
            self._ear.make_room()

    async def _next(self, listening: Listening) -> MQTTMessage:
        ear = self._ear
        while not ear.arrived:
            if ear.lost.done():
                raise ear.lost.result()
            self._check_answer()
            if ear.answers():
                listening.heard(None)
            ear.news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBE):
                    await ear.news.wait()
        return ear.arrived.popleft()

    def _delivery(self, message: MQTTMessage) -> Delivery:
        told = message.properties
        arrival = Arrival(
            payload=bytes(message.payload),
            content_type=getattr(told, "ContentType", None),
            user=getattr(told, "UserProperty", ()),
            correlation=getattr(told, "CorrelationData", None),
        )
        return Delivery(
            body=body_of(arrival, signed=self._signed),
            headers=headers_of(arrival),
            ack=partial(self._acknowledge, message),
            unread=self._unread(message),
        )

    async def _acknowledge(self, message: MQTTMessage) -> None:
        """Once the connection is gone it comes again: it is in the journal."""
        if not self._ear.lost.done():
            self._ear.acknowledge(message)

    def _unread(self, message: MQTTMessage) -> str | None:
        """What is retained comes at every start, whoever meant it once.

        A session goes on with the topics it had, also when the configuration has another now.
        """
        if message.retain:
            return "retained"
        with suppress(UnicodeError):
            if topic_matches_sub(self._filter, message.topic):
                return None
        return "other-topic"


def unshared(topic: str) -> str:
    """The filter within `$share/GROUP/FILTER`, or *topic* itself."""
    if not topic.startswith("$share/"):
        return topic
    return topic.split("/", 2)[-1]
