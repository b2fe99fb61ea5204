"""The far sides of all sinks: they fail when told to, and note what arrived and when."""

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.ledger import Delivery, digest_of_bytes, digest_of_json
from support.kafka_reader import Found
from support.mosquitto_clients import Subscriber
from support.rsyslog_stand_in import Receiver as SyslogReceiver
from support.webhook_receiver import Got, Receiver, after, raw, says

Json = dict[str, Any]
Clock = Callable[[], float]
_DECODER = json.JSONDecoder()
HEADER_PARTS = 7
"""Of a syslog message, before its text; there is no structured data."""


def delivery(sink: str, body: bytes, at: float) -> Delivery:
    """Of a transport that passes on the bytes of the CloudEvent."""
    envelope = json.loads(body)
    return Delivery(sink, envelope["observer"], envelope["id"], at, digest_of_bytes(body))


@dataclass
class Hook(Receiver):
    """A webhook receiver that notes each request it has accepted."""

    clock: Clock = lambda: 0.0
    deliveries: list[Delivery] = field(default_factory=list)

    async def _answer(self, request: Any, got: Got) -> Any:
        at = self.clock()
        response = await super()._answer(request, got)
        if 200 <= response.status < 300 and request.transport is not None:
            self.deliveries.append(delivery("hook", got.body, at))
        self.got.clear()
        self.taken.clear()
        return response

    def answer(self, status: int, retry_after: int | None = None) -> None:
        headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
        self.usual = says(status, "not now", **headers)

    def reset(self) -> None:
        self.usual = raw(b"")

    def silence(self) -> asyncio.Event:
        """No answer until the event is set."""
        released = asyncio.Event()
        self.usual = after(released)
        return released

    def recover(self) -> None:
        self.usual = says(204)

    async def rotate(self, context: ssl.SSLContext) -> None:
        """Restart with another certificate."""
        await self.down()
        self.context = context
        await self.up()


@dataclass
class Lines:
    """A file of JSON objects that a bridge or its command appends to."""

    path: Path
    sink: str
    _read: int = 0

    def news(self, at: float) -> Iterator[Delivery]:
        """What is new and complete."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            for body in _objects(line):
                yield delivery(self.sink, body, at)


def _objects(line: bytes) -> Iterator[bytes]:
    """Usually one; two when two commands of a bridge that was killed wrote at the same time."""
    text = line.decode()
    while text := text.strip():
        _, end = _DECODER.raw_decode(text)
        yield text[:end].encode()
        text = text[end:]


@dataclass
class Siem:
    """What the syslog receiver has got so far."""

    receiver: SyslogReceiver
    _read: int = 0

    def news(self, at: float) -> Iterator[Delivery]:
        new = self.receiver.messages[self._read :]
        self._read += len(new)
        for message in new:
            yield delivery("siem", message.split(b" ", HEADER_PARTS)[HEADER_PARTS], at)


@dataclass
class Floor:
    """What mosquitto_sub has printed so far."""

    subscriber: Subscriber
    _read: int = 0

    def news(self, at: float) -> Iterator[Delivery]:
        new = self.subscriber.payloads[self._read :]
        self._read += len(new)
        for payload in new:
            yield delivery("floor", payload.encode(), at)


def from_kafka(records: list[Found], started: float) -> Iterator[Delivery]:
    """The records of the events topic; *started* is the wall clock's time of the start."""
    for record in records:
        envelope = record.envelope
        at = record.at / 1000 - started
        digest = digest_of_json(envelope)
        yield Delivery("bus", envelope["observer"], envelope["id"], at, digest, "json")
