"""One connection to an MQTT server, for asyncio.

The sink and the approval source both use it:

    client = Client(connector, Terms(), will=…, heard=…)
    try:
        greeting = await client.connect()      # raises Unavailable with the reason
        answer = await client.publish(message)
        codes = await client.subscribe({"topic/+": 1})
        client.acknowledge(message)            # a message that `heard` got
        raise await client.lost                # the connection is gone: an Unavailable, as a value
    finally:
        await client.close()

Everything here runs in the event loop. paho has its own thread, and its callbacks only
notify the loop.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from paho.mqtt.client import MQTTMessage

from bridge.plugins import Unavailable
from sinks.mqtt.binding import MqttMessage
from sinks.mqtt.connection import Connector
from sinks.mqtt.errors import (
    Acknowledgment,
    Greeting,
    Lost,
    connection_ended,
    hung_up,
    not_connected,
    not_let_in,
    protocol_error,
)
from sinks.mqtt.network import Network, Terms

WINDOW = 20
"""The most messages that wait for an acknowledgment; fewer if the server says so."""
GRACE = 1.0
"""How long disconnecting may take, in seconds."""
_SILENT, _NOT_MQTT = 0x8D, 0x82
"""Why paho itself ends a connection."""
_YOUNG = 10.0
"""A connection that the server ends earlier than this has perhaps lost its client id."""


class Client:
    """`heard` is called for every message that arrives; only subscribers need it."""

    def __init__(
        self,
        connector: Connector,
        terms: Terms | None = None,
        *,
        will: MqttMessage | None = None,
        heard: Callable[[MQTTMessage], None] | None = None,
    ) -> None:
        self._connector, self._heard = connector, heard
        self._loop = asyncio.get_running_loop()
        self.greeting = Greeting()
        self.lost: asyncio.Future[Unavailable] = self._loop.create_future()
        self._greeted: asyncio.Future[None] = self._loop.create_future()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._window = asyncio.Semaphore(WINDOW)
        self._thread: Any = None
        self._began = 0.0
        self._leaving = False
        self._network = Network(connector, terms or Terms(), self._on_ended)
        self._network.on_connect = self._on_connect
        self._network.on_disconnect = self._on_disconnect
        self._network.on_publish = self._on_publish
        self._network.on_subscribe = self._on_subscribe
        self._network.on_message = self._on_message
        if will is not None:
            self._network.will(will)

    async def connect(self) -> Greeting:
        """Call it once. Raises `Unavailable` when the server cannot be reached or refuses us."""
        self._thread = self._network.start()
        patience = self._connector.patience
        try:
            async with asyncio.timeout(patience):
                await self._greeted
        except TimeoutError:
            raise Unavailable(
                f"{self._connector.server}: no answer within {patience:g} s"
            ) from None
        finally:
            if self._greeted.cancelled():
                self.give_up(Lost("the connection is no longer needed"))
        return self.greeting

    async def publish(self, message: MqttMessage) -> Acknowledgment:
        """The server's answer; with QoS 0, that it is sent. Raises `Lost` when there is none.

        A late answer makes the connection useless: it is not known how many
        more the server would accept.
        """
        async with self._window:
            self._must_be_there()
            code, number = self._network.send(message)
            try:
                answer: Acknowledgment = await self._answer(code, number)
            except asyncio.CancelledError:
                self.give_up(Lost("the server did not acknowledge in time"))
                raise
            return answer

    async def subscribe(self, topics: Mapping[str, int]) -> list[Acknowledgment]:
        """The server's answer for each filter, in their order. Raises `Lost` when there is none."""
        self._must_be_there()
        code, number = self._network.subscribe(list(topics.items()))
        answers: list[Acknowledgment] = await self._answer(code, number or 0)
        return answers

    def acknowledge(self, message: MQTTMessage) -> None:
        self._network.ack(message.mid, message.qos)

    def size(self, message: MqttMessage) -> int:
        """The size of its packet, in bytes."""
        return self._network.size(message)

    @property
    def idle(self) -> bool:
        """Whether it is connected and nothing waits for an answer."""
        return self._greeted.done() and not self.lost.done() and not self._answers

    def give_up(self, problem: Unavailable) -> None:
        """Everything that waits gets *problem*, and the connection is cut."""
        self._end(problem)
        self._network.cut()

    async def close(self) -> None:
        """Disconnect, or cut the connection. Either way the thread ends soon."""
        self._leaving = True
        try:
            if self.idle:
                self._network.disconnect()
                await self._join()
        finally:
            self._end(Lost("the connection is closed"))
            self._network.cut()
            await self._join()
            if self._thread is None or not self._thread.is_alive():
                self._network.forget()

    async def _join(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, GRACE)

    def _must_be_there(self) -> None:
        if self.lost.done():
            raise Lost(str(self.lost.result()), retry_after=self.lost.result().retry_after)

    async def _answer(self, code: int, number: int) -> Any:
        """An answer may come before paho returns the number; it waits for its turn in the loop."""
        if code:
            self.give_up(Lost("the connection broke"))
        self._must_be_there()
        answer = self._answers[number] = self._loop.create_future()
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    # --- In the event loop, called by the thread --------------------------------------------------

    def _greet(self, answer: Acknowledgment, greeting: Greeting) -> None:
        if self._greeted.done():
            return
        if not answer.ok:
            self._end(not_let_in(answer.code, self._connector.server, answer.said))
            return
        self.greeting, self._began = greeting, self._loop.time()
        self._window = asyncio.Semaphore(min(WINDOW, greeting.receive_maximum))
        self._greeted.set_result(None)

    def _settle(self, number: int, result: Any) -> None:
        answer = self._answers.get(number)
        if answer is not None and not answer.done():
            answer.set_result(result)

    def _disconnected(self, answer: Acknowledgment, *, by_server: bool) -> None:
        there, we = self._connector.server, self._connector.client_id
        if by_server:
            self._end(connection_ended(answer.code, there, we, answer.said))
        elif not self._greeted.done():
            self._end(not_connected(None, there))
        elif answer.code == _NOT_MQTT:
            self._end(protocol_error(there, we, time.monotonic(), self._network.wrong))
        elif answer.code == _SILENT:
            self._end(Lost("the server was silent for longer than keep_alive"))
        else:
            self._broke()

    def _over(self, error: Exception | None) -> None:
        if self._greeted.done():
            self._broke(error)
        else:
            self._end(not_connected(error, self._connector.server))

    def _broke(self, error: Exception | None = None) -> None:
        """The server hung up. If a message is on its way, that may be the reason."""
        young = self._loop.time() - self._began < _YOUNG and not self._leaving
        if young and self.idle and error is None:
            there, we = self._connector.server, self._connector.client_id
            self._end(hung_up(there, we, time.monotonic()))
        else:
            self._end(Lost(f"the connection broke: {error}" if error else "the connection broke"))

    def _end(self, problem: Unavailable) -> None:
        """Only the first reason counts."""
        if self.lost.done():
            return
        self.lost.set_result(problem)
        for future in (self._greeted, *self._answers.values()):
            if not future.done():
                future.set_exception(problem)
        if self._greeted.done() and not self._greeted.cancelled():
            self._greeted.exception()  # retrieved, also when no task waits for it

    # --- In paho's thread: nothing here may raise or wait -----------------------------------------

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *args)

    def _on_connect(self, _c: Any, _u: Any, flags: Any, code: Any, properties: Any) -> None:
        greeting = Greeting.read(flags, properties)
        self._tell(self._greet, Acknowledgment.read(code, properties), greeting)

    def _on_disconnect(self, _c: Any, _u: Any, flags: Any, code: Any, properties: Any) -> None:
        by_server = flags.is_disconnect_packet_from_server
        answer = Acknowledgment.read(code, properties)
        self._tell(lambda: self._disconnected(answer, by_server=by_server))

    def _on_publish(self, _c: Any, _u: Any, number: int, code: Any, properties: Any) -> None:
        self._tell(self._settle, number, Acknowledgment.read(code, properties))

    def _on_subscribe(self, _c: Any, _u: Any, number: int, codes: Any, properties: Any) -> None:
        self._tell(self._settle, number, [Acknowledgment.read(code, properties) for code in codes])

    def _on_message(self, _c: Any, _u: Any, message: MQTTMessage) -> None:
        if self._heard is not None:
            self._tell(self._heard, message)

    def _on_ended(self, error: Exception | None) -> None:
        self._tell(self._over, error)
