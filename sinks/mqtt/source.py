"""Approvals from an MQTT topic: the keys, and the client that subscribes.

The server keeps the client's session, and sends no more than the client can handle.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Literal, Self

from paho.mqtt.client import MQTTMessage, topic_matches_sub
from pydantic import Field, field_validator, model_validator

from bridge.plugins import (
    ApprovalSettings,
    Delivery,
    Duration,
    Listening,
    Place,
    SinkSettings,
    Unavailable,
)
from sinks.mqtt.binding import Arrival, Backlog, LastHeard, away_since, body_of, headers_of
from sinks.mqtt.client import Client
from sinks.mqtt.connection import Connector, make_connector
from sinks.mqtt.errors import SLOW, subscription_refused
from sinks.mqtt.network import Terms
from sinks.mqtt.settings import ClientId, Connection, MqttSettings, name_client
from sinks.mqtt.topics import may_meet, validate_filter

PATIENCE = 10.0
"""The limit for connecting, and for the answer to our subscription, in seconds."""
WINDOW = 32
"""The most messages without an acknowledgment; the others wait at the server or in the socket."""
LARGEST = 256 * 1024
"""The largest packet that servers may send, and what we keep of a larger one: four times
the largest approval."""
PROBE = 5.0
"""How often to check whether the server still answers, in seconds."""
TOMBSTONE = "tombstone"
"""Why an empty message is not read: it clears a retained one, and says nothing else."""
_LOOK = 0.1
LAST_HEARD: dict[str, LastHeard] = {}
"""Of each source's last connection in this process."""


class MqttApprovals(Connection, ApprovalSettings):
    """Which topic, and how long the server keeps approvals for a bridge that is away."""

    SHARED: ClassVar[tuple[str, ...]] = tuple(Connection.model_fields)
    PROVES: ClassVar[bool] = False

    type: Literal["mqtt"]
    topic: str = Field(description="may contain + and #, {vm_name}, {location}, …")
    client_id: ClientId = None
    session_expiry: Duration = Field(
        86400.0,
        ge=1,
        le=4294967294,
        description="how long the server keeps approvals while the bridge is away; MQTT 5",
    )

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        if topic.startswith("$share/"):
            raise ValueError(
                f"{topic!r} is a shared subscription, but every bridge must read every approval; "
                "write the topic without $share/GROUP/"
            )
        return validate_filter(topic)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.version != "5" and "session_expiry" in self.model_fields_set:
            raise ValueError("session_expiry needs version: 5; with 3.1.1 the server decides")
        return self

    @property
    def exclusive(self) -> str | None:
        return self.describe_client(self.client_id)

    def describe(self) -> str:
        return f"come from MQTT topic {self.topic} {self.describe_connection()}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """Compares topics only: two names may belong to one server."""
        if not isinstance(sink, MqttSettings):
            return False
        published = (sink.topic, sink.birth_topic)
        return any(may_meet(self.topic, each) for each in published if each)


@asynccontextmanager
async def listen(
    settings: MqttApprovals, place: Place, listening: Listening
) -> AsyncGenerator[AsyncIterator[Delivery]]:
    """Subscribed when entered. Raises `Unavailable` when it cannot subscribe."""
    client_id = name_listener(settings, replace(place, sink=listening.name))
    connector = make_connector(settings, client_id, PATIENCE)
    signed = settings.trust == "signed"
    subscription = Subscription(
        connector, place.fill(settings.topic), int(settings.session_expiry), signed=signed
    )
    try:
        await subscription.start(listening)
        async with aclosing(subscription.deliveries(listening)) as deliveries:
            yield deliveries
    finally:
        await subscription.stop()
        if (heard := subscription.last_heard()) is not None:
            LAST_HEARD[listening.name] = heard


def name_listener(settings: MqttApprovals, place: Place) -> str:
    """The server keeps our session under it, so a temporary id would lose approvals."""
    if settings.client_id is None and not place.names.get("vm_id"):
        why = "this VM's id is not known yet, and the server keeps approvals under it"
        raise Unavailable(f"{why}; set client_id to do without")
    return name_client(settings.client_id, place, "approvals")


class Receiver(Client):
    """A client that stops reading while it has no room, so that a flood waits at the server."""

    def __init__(self, connector: Connector, terms: Terms) -> None:
        super().__init__(connector, terms, heard=self._arrive)
        self.arrived: deque[MQTTMessage] = deque()
        self.news = asyncio.Event()
        self.lost.add_done_callback(lambda _: self.news.set())
        self._room = threading.Semaphore(WINDOW)

    def make_room(self) -> None:
        self._room.release()

    @property
    def last_packet(self) -> float:
        """When the server sent its last packet, by the monotonic clock."""
        return self._network.last_packet

    def answers(self) -> bool:
        """Whether the server answers as often as it should."""
        return self._network.overdue() < PROBE

    def _arrive(self, message: MQTTMessage) -> None:
        self.arrived.append(message)
        self.news.set()

    def _on_message(self, _c: Any, _u: Any, message: MQTTMessage) -> None:
        """In paho's thread, which waits for this: some servers ignore our limit."""
        while not (self._leaving or self.lost.done()):
            if self._room.acquire(timeout=_LOOK):
                super()._on_message(_c, _u, message)
                return


async def subscribe(client: Client, connector: Connector, topic: str) -> None:
    """Raises `Unavailable` when the server refuses the topic, or could lose approvals."""
    try:
        async with asyncio.timeout(connector.patience):
            (answer,) = await client.subscribe({topic: 1})
    except TimeoutError:
        raise Unavailable(f"{connector.server}: no answer to our subscription") from None
    if not answer.ok:
        raise subscription_refused(answer.code, topic, answer.said)
    if answer.code == 0:
        why = "the server does not grant QoS 1, so approvals could be lost"
        raise Unavailable(f"topic {topic}: {why}", retry_after=SLOW)


class Subscription:
    """One bridge's subscription. `topic` may contain wildcards."""

    def __init__(self, connector: Connector, topic: str, expiry: int, *, signed: bool) -> None:
        self._connector, self._topic, self._signed = connector, topic, signed
        terms = Terms(clean=False, expiry=expiry, receive_maximum=WINDOW, largest=LARGEST)
        self._receiver = Receiver(connector, terms)
        self._asking: asyncio.Task[None] | None = None
        self._backlog: Backlog | None = None

    async def start(self, listening: Listening) -> None:
        """Raises `Unavailable` when the broker refuses us, or the topic.

        Messages of the session come first, and may have to be taken before the answer to our
        subscription can be read. Then `deliveries` checks the answer.
        """
        receiver = self._receiver
        greeting = await receiver.connect()
        present, now = greeting.session_present, time.monotonic()
        known, at = LAST_HEARD.get(listening.name), (now, datetime.now(UTC))
        since = away_since(known, listening.connected, session_present=present, at=at)
        self._backlog = Backlog(since, now)
        # Each time: the topic of the session may be an old one.
        self._asking = asyncio.create_task(subscribe(receiver, self._connector, self._topic))
        self._asking.add_done_callback(lambda _: receiver.news.set())
        while not (self._asking.done() or receiver.arrived):
            receiver.news.clear()
            await receiver.news.wait()
        self._check_answer()

    def _check_answer(self) -> None:
        if self._asking is not None and self._asking.done():
            self._asking.result()

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self._receiver.close()

    def last_heard(self) -> LastHeard | None:
        """When the server was last heard in this connection; None if there was none."""
        if self._backlog is None:
            return None
        heard, now = self._receiver.last_packet, time.monotonic()
        return LastHeard(heard, datetime.now(UTC) - timedelta(seconds=now - heard))

    async def deliveries(self, listening: Listening) -> AsyncGenerator[Delivery]:
        """Never ends. Raises `Unavailable` when the connection is gone and all is taken."""
        while True:
            yield self._delivery(await self._next(listening))

    async def _next(self, listening: Listening) -> MQTTMessage:
        receiver = self._receiver
        while not receiver.arrived:
            if receiver.lost.done():
                raise receiver.lost.result()
            self._check_answer()
            if receiver.answers():
                listening.heard(None)
            receiver.news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBE):
                    await receiver.news.wait()
        return receiver.arrived.popleft()

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
            unread=self._unread(message) or (TOMBSTONE if arrival.is_tombstone else None),
            recorded=self._given(message),
        )

    def _given(self, message: MQTTMessage) -> datetime | None:
        if self._backlog is None:
            return None
        more = bool(self._receiver.arrived)
        return self._backlog.given(message.timestamp, time.monotonic(), more=more)

    async def _acknowledge(self, message: MQTTMessage) -> None:
        """Without a connection it comes again; the journal recognizes it."""
        if not self._receiver.lost.done():
            self._receiver.acknowledge(message)
        self._receiver.make_room()

    def _unread(self, message: MQTTMessage) -> str | None:
        """Why not to read it: a retained message comes again at every start.

        A session keeps its old topics, even when the configuration has another one now.
        """
        if message.retain:
            return "retained"
        with suppress(UnicodeError):
            if topic_matches_sub(self._topic, message.topic):
                return None
        return "other-topic"
