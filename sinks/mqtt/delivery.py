"""Delivers a batch to an MQTT server: as many at a time as it accepts, one result for each."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from bridge.plugins import CloudEvent, Place, Rejected, Result, Send, Unavailable, open_format
from sinks._limit import batch_limit
from sinks.mqtt.binding import Binding, MqttMessage, Presence
from sinks.mqtt.client import GRACE, Client
from sinks.mqtt.connection import Login, log_in, make_connector
from sinks.mqtt.errors import SLOW, Greeting, Lost, message_refused
from sinks.mqtt.settings import MqttSettings, name_client

log = logging.getLogger(__name__)

_OF_LIMIT = 0.8
"""The share of the time for connecting; the rest is for the birth message."""


@asynccontextmanager
async def open_sink(settings: MqttSettings, place: Place) -> AsyncGenerator[Send]:
    session = OpenSink.begin(settings, place)
    try:
        await session.connect()
        yield session.send
    finally:
        await session.disconnect()


@dataclass
class OpenSink:
    """A connection, replaced when the credentials change."""

    settings: MqttSettings
    binding: Binding
    client_id: str
    presence: Presence | None
    limit: float
    """The limit for one batch, and for connecting, in seconds."""
    lost: Callable[[Unavailable], None] = lambda _: None
    """Called when a connection ends by itself."""
    _login: Login = field(default_factory=Login)
    _client: Client | None = None

    @classmethod
    def begin(cls, settings: MqttSettings, place: Place) -> Self:
        """Raises `Unavailable` while a placeholder in a topic has no value yet."""
        client_id = name_client(settings.client_id, place, "sink")
        response = settings.response_topic
        binding = Binding(
            settings,
            place,
            format=open_format(settings) if settings.format else None,
            response_topic=place.fill(response) if response else None,
        )
        binding.topic_of("SUBJECT")  # a missing value concerns the sink, not each CloudEvent
        presence = Presence.of(settings, place, client_id)
        return cls(settings, binding, client_id, presence, batch_limit(settings), place.lost)

    async def connect(self) -> Greeting:
        connector = make_connector(self.settings, self.client_id, self.limit * _OF_LIMIT)
        self._login = connector.login
        will = self.presence.will() if self.presence else None
        self._client = Client(connector, will=will)
        self._client.lost.add_done_callback(partial(self._ended, self._client))
        greeting = await self._client.connect()
        _demand(self.settings, greeting)
        if self.presence:
            await self._announce(self.presence.online())
        return greeting

    async def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            if self.presence and client.idle:
                with suppress(Unavailable, TimeoutError):
                    async with asyncio.timeout(GRACE):
                        await client.publish(self.presence.offline())
        finally:
            await client.close()

    def _ended(self, client: Client, why: asyncio.Future[Unavailable]) -> None:
        """Ignore a connection that the sink gave up itself."""
        if self._client is client and not why.cancelled():
            self.lost(why.result())

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        """Raises `Unavailable` when nothing gets through, so that the bridge reconnects."""
        await self._renew()
        tasks = [asyncio.create_task(self._deliver(cloudevent)) for cloudevent in batch]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self.limit)
        finally:
            late = [task for task in tasks if not task.done()]
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        results = [self._late() if task in late else task.result() for task in tasks]
        lost = [result for result in results if isinstance(result, Lost)]
        if lost and len(lost) == len(results):
            raise Unavailable(str(lost[0]), retry_after=lost[0].retry_after)
        return results

    def _late(self) -> Lost:
        return Lost(f"no acknowledgment within {self.limit:g} s")

    async def _renew(self) -> None:
        """Rotated files take effect here. Half a rotation does not."""
        try:
            login = log_in(self.settings)
        except Unavailable:
            return
        if login != self._login:
            await self.disconnect()
            await self.connect()

    async def _announce(self, birth: MqttMessage) -> None:
        """A refused birth message does not stop delivery."""
        result = await self._publish(birth)
        if isinstance(result, Lost):
            raise result
        if result is not None:
            log.warning("mqtt.birth_refused", extra={"error": str(result)})

    async def _deliver(self, cloudevent: CloudEvent) -> Result:
        """Delivered means acknowledged, with the retained state cleared if that is due."""
        try:
            said, *clearing = self.binding.messages(cloudevent, time.time())
        except Rejected as error:
            return error
        result = await self._publish(said)
        if isinstance(result, Unavailable):
            return result
        for message in clearing:
            not_cleared = await self._publish(message)
            result = result or not_cleared
        return result

    async def _publish(self, message: MqttMessage) -> Unavailable | Rejected | None:
        client = self._client
        if client is None:
            return Lost("the connection is closed")
        most = client.greeting.maximum_packet
        if most is not None and (size := client.size(message)) > most:
            return Rejected(
                f"the message has {size} bytes; the server accepts {most} (topic {message.topic})"
            )
        try:
            answer = await client.publish(message)
        except Lost as error:
            return error
        return None if answer.ok else message_refused(answer.code, message.topic, answer.said)


def _demand(settings: MqttSettings, greeting: Greeting) -> None:
    """Raises `Unavailable` when the server lacks a feature that the settings need."""
    if settings.qos > greeting.maximum_qos:
        raise Unavailable(
            f"{settings.server}: the server supports QoS 0 only; set qos: 0", retry_after=SLOW
        )
    if not greeting.retains and (settings.retain_state or settings.birth_topic):
        raise Unavailable(
            f"{settings.server}: the server retains no messages;"
            " set retain_state: false and birth_topic: null",
            retry_after=SLOW,
        )
