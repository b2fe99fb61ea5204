"""Delivers a batch to a webhook: some requests at a time, one result for each CloudEvent."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

import aiohttp

from bridge.plugins import (
    CloudEvent,
    Format,
    Gone,
    Place,
    Rejected,
    Result,
    Send,
    Unavailable,
    open_format,
    sign,
)
from sinks._limit import batch_limit
from sinks.webhook import handshake
from sinks.webhook.binding import HttpMessage, alone, messages
from sinks.webhook.connection import Line, client, dial
from sinks.webhook.errors import Meaning, Response, judge
from sinks.webhook.handshake import Pace
from sinks.webhook.settings import WebhookSettings


@asynccontextmanager
async def open_sink(settings: WebhookSettings, place: Place) -> AsyncGenerator[Send]:
    async with client(settings) as http:
        session = OpenSink.begin(settings, place, http)
        line = await session.connect()
        if settings.handshake == "off":
            await line.look()
        yield session.send


@dataclass(slots=True)
class OpenSink:
    """What the open sink knows about the receiver."""

    settings: WebhookSettings
    place: Place
    http: aiohttp.ClientSession
    form: Format
    limit: float
    """For one batch, in seconds."""
    consent: handshake.Consent | None = None
    _halt: Unavailable | None = None
    """What ended the batch: it applies to all CloudEvents."""
    _paced_until: float = 0.0
    _insisting: bool = False
    _agreed_with: str = field(default="", repr=False)
    _pace: Pace | None = None

    @classmethod
    def begin(cls, settings: WebhookSettings, place: Place, http: aiohttp.ClientSession) -> Self:
        return cls(settings, place, http, open_format(settings), batch_limit(settings))

    async def connect(self) -> Line:
        """The line to the receiver; with a handshake, only after the receiver was asked."""
        line = await dial(self.http, self.settings, self.place)
        if self.settings.handshake != "off" and self._agreed_with != line.target.url:
            await self._agree(line)
        return line

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        results: list[Result] = [Unavailable(f"not sent within {self.limit:g} s")] * len(batch)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limit):
                await self._deliver(batch, results)
        return results

    async def _deliver(self, batch: Sequence[CloudEvent], results: list[Result]) -> None:
        """Fill in *results*; what is not settled in time stays as it is."""
        self._halt = self._halt if isinstance(self._halt, Gone) else None
        # The bridge comes earlier than asked only with a CloudEvent that has little notice.
        self._insisting = time.monotonic() < self._paced_until
        try:
            line = await self.connect()
        except Unavailable as problem:
            results[:] = [problem] * len(batch)
            return
        settings = self.settings
        made, unsaid = messages(batch, settings.mode, self.form, settings.batch_size)
        for place, rejected in unsaid.items():
            results[place] = rejected
        waiting = iter(made)

        async def work() -> None:
            for message in waiting:
                await self._settle(line, message, batch, results)

        async with asyncio.TaskGroup() as group:
            for number in range(min(settings.concurrency, len(made))):
                group.create_task(work(), name=f"webhook-{number}")

    async def _settle(
        self, line: Line, message: HttpMessage, batch: Sequence[CloudEvent], results: list[Result]
    ) -> None:
        def note(result: Result) -> None:
            for place in message.places:
                results[place] = result

        paused = self._paused()
        if paused is not None:
            note(paused)
            return
        note(Unavailable(f"{line.target.origin}: no answer within {self.limit:g} s"))
        result = await self._post(line, message)
        note(result)
        if isinstance(result, Rejected) and len(message.places) > 1:
            # One rejected CloudEvent must not affect its neighbors.
            for each in alone(message, batch):
                await self._settle(line, each, batch, results)

    def _paused(self) -> Unavailable | None:
        """Why nothing may be sent now."""
        if self._halt is not None or self._pace is None:
            return self._halt
        now = time.monotonic()
        wait = self._pace.take(now, insist=self._insisting)
        if not wait:
            return None
        self._paced_until = now + wait
        return Unavailable(f"at most {self._pace.rate} requests a minute", retry_after=wait)

    async def _post(self, line: Line, message: HttpMessage) -> Unavailable | Rejected | None:
        headers = dict(message.headers)
        if line.credentials.keys:
            now = int(time.time())
            headers |= sign(line.credentials.keys, message.id, now, message.body)
        if self.consent is not None and self.consent.given:
            headers |= handshake.request(self._origin)
        try:
            answer = await line.ask("POST", headers, message.body)
        except Unavailable as problem:
            return problem
        return self._heed(line, answer).result

    def _heed(self, line: Line, answer: Response) -> Meaning:
        judged = judge(answer, datetime.now(UTC), line.hidden)
        if answer.status in {401, 403} and self.settings.tokens is not None:
            self.settings.tokens.forget()
        if judged.halts and isinstance(judged.result, Unavailable):
            self._halt = judged.result
        return judged

    @property
    def _origin(self) -> str:
        return self.place.fill(self.settings.origin or "")

    async def _agree(self, line: Line) -> None:
        settings, origin = self.settings, self._origin
        answer = await line.ask("OPTIONS", handshake.request(origin))
        consent = handshake.read_consent(answer, origin)
        judged = self._heed(line, answer).result
        problem = handshake.refusal(consent, answer, judged, settings.handshake)
        if problem is not None:
            raise problem
        self._agreed_with, self.consent = line.target.url, consent
        self._pace = Pace(consent.rate) if consent.rate is not None else None
