"""The client of the endpoint: read the document, approve, and ask which VM this is."""

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

import aiohttp
from yarl import URL

from bridge.common.computation import computed
from bridge.core.model import Document, Instance
from bridge.metadata.answers import (
    OUTDATED,
    WITHDRAWN,
    Accepted,
    Answer,
    Reply,
    SourceProblem,
    read_accepted,
    read_document,
    read_instance,
    received,
    sentence,
)
from bridge.metadata.budget import Budget
from bridge.metadata.late_body import LateBody, LateRequest, NotSent

log = logging.getLogger(__name__)

__all__ = ["OUTDATED", "Accepted", "Answer", "Budget", "Metadata", "SourceProblem"]

LARGEST_DOCUMENT = 16 * 1024 * 1024
LARGEST_BODY = 1024 * 1024
"""Of all other answers."""
_LONG = 64 * 1024
"""From this size on, a document is read in a thread."""
INSTANCE_VERSION = "2021-02-01"
"""Versions are per category: `/metadata/instance` does not accept those of scheduled events."""
_DISABLED_AFTER = 24 * 3600.0
_ECHOES_INCARNATION = "2017-03-01"
_HEADERS = {
    "Metadata": "true",
    "User-Agent": "scheduled-events-bridge",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
_REQUEST_ERRORS = (aiohttp.ClientError, OSError, ValueError)
"""Everything that aiohttp raises because of a server; a timeout is an OSError."""


class Metadata:
    """One endpoint, one connection, one request at a time; never a proxy or a redirect.

    Whatever the server does, nothing raises: a failure is returned as a `SourceProblem`. Azure
    takes up to two minutes for the first answer, and again after a day without requests;
    `first_timeout` is for that.
    """

    def __init__(
        self,
        endpoint: str,
        api_version: str,
        *,
        budget: Budget | None = None,
        connect_timeout: float = 2.0,
        first_timeout: float = 130.0,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.api_version = api_version
        self._budget = budget or Budget()
        self._connect_timeout = connect_timeout
        self._first_timeout = first_timeout
        self._timeout = timeout
        self._clock = clock
        self._last_good: float | None = None
        self._read_last: tuple[bytes, Document] | None = None
        self._wire = asyncio.Lock()
        self._reads = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            auto_decompress=False,
            trust_env=False,
            request_class=LateRequest,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def fetch(self) -> Answer | SourceProblem:
        """Read the document of scheduled events."""
        async with self._reads:
            got = await self._exchange("GET", self._events_url(), self._patience())
        answer = got if isinstance(got, SourceProblem) else await self._read(got)
        if isinstance(answer, Answer):
            self._last_good = self._clock()
        return answer

    async def _read(self, reply: Reply) -> Answer | SourceProblem:
        """Read a document; the same bytes as last time are the same document, at another time."""
        whole = reply.status == 200 and reply.broken is None
        if whole and self._read_last is not None and self._read_last[0] == reply.body:
            return Answer(self._read_last[1], date=reply.date)
        read = partial(read_document, reply, self.api_version)
        answer = await computed(read, long=len(reply.body) >= _LONG)
        if isinstance(answer, Answer) and answer.document is not None:
            self._read_last = reply.body, answer.document
        return answer

    async def approve(
        self, choose: Callable[[], Awaitable[Sequence[str]]], incarnation: int | str | None = None
    ) -> Accepted | SourceProblem:
        """Tell Azure that scheduled events may start. It goes before all waiting reads.

        *choose* names them, in Azure's own spelling, when the budget is taken and the connection
        is there; if it names none, nothing is sent. Only 2017-03-01 gets the incarnation, as
        received.
        """
        chosen: list[str] = []

        async def body() -> bytes | None:
            chosen[:] = await choose()
            return self._start_requests(chosen, incarnation) if chosen else None

        got = await self._exchange("POST", self._events_url(), self._timeout, LateBody(body))
        answer = got if isinstance(got, SourceProblem) else read_accepted(got)
        result = answer.reason if isinstance(answer, SourceProblem) else "accepted"
        log.debug("start_request.sent", extra={"event_ids": chosen, "result": result})
        return answer

    def _start_requests(self, event_ids: Sequence[str], incarnation: int | str | None) -> bytes:
        requests: dict[str, object] = {"StartRequests": [{"EventId": id_} for id_ in event_ids]}
        if self.api_version == _ECHOES_INCARNATION and incarnation is not None:
            requests["DocumentIncarnation"] = incarnation
        return json.dumps(requests).encode()

    async def instance(self) -> Instance | SourceProblem:
        """Ask which VM this is."""
        url = f"{self.endpoint}/metadata/instance?api-version={INSTANCE_VERSION}"
        async with self._reads:
            got = await self._exchange("GET", url, self._timeout)
        return got if isinstance(got, SourceProblem) else read_instance(got)

    def _events_url(self) -> str:
        return f"{self.endpoint}/metadata/scheduledevents?api-version={self.api_version}"

    def _patience(self) -> float:
        since = self._last_good
        enabled = since is not None and self._clock() - since < _DISABLED_AFTER
        return self._timeout if enabled else self._first_timeout

    async def _exchange(
        self, method: str, url: str, timeout: float, body: LateBody | None = None
    ) -> Reply | SourceProblem:
        if self._session is None:
            raise RuntimeError("Metadata must be used inside its `async with`")
        async with self._wire:
            await self._budget.take()
            if self._session.closed:  # a reload replaced this client while the request waited
                return OUTDATED
            try:
                async with self._session.request(
                    method,
                    url,
                    data=body,
                    headers={"Content-Type": "application/json"} if body else None,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(
                        total=self._connect_timeout + timeout, connect=self._connect_timeout
                    ),
                ) as response:
                    return await _reply(response)
            except NotSent as stopped:
                if stopped.error is not None:
                    raise stopped.error from None
                return WITHDRAWN
            except _REQUEST_ERRORS as error:
                return _failure(error, url)


async def _reply(response: aiohttp.ClientResponse) -> Reply:
    headers = response.headers
    body, broken = await _body(response)
    return received(
        response.status,
        body,
        date=headers.get("Date"),
        retry_after=headers.get("Retry-After"),
        broken=broken,
    )


async def _body(response: aiohttp.ClientResponse) -> tuple[bytes, SourceProblem | None]:
    body, most = bytearray(), _most(response)
    try:
        async for chunk in response.content.iter_chunked(65536):
            body += chunk
            if len(body) > most:
                response.close()
                text = f"The metadata service sent more than {most} bytes"
                return b"", SourceProblem("too-large", sentence(text), status=response.status)
    except _REQUEST_ERRORS as error:
        return b"", _failure(error, str(response.url), status=response.status)
    return bytes(body), None


def _most(response: aiohttp.ClientResponse) -> int:
    """How many bytes to read: only a document may be large."""
    document = response.status == 200 and response.url.path.endswith("/scheduledevents")
    return LARGEST_DOCUMENT if document else LARGEST_BODY


def _failure(error: Exception, url: str, status: int | None = None) -> SourceProblem:
    """Translate what aiohttp raises; the order matters because its classes overlap."""
    where = _where(url)
    match error:
        case aiohttp.ConnectionTimeoutError():
            reason, what = "unreachable", f"Nothing at {where} accepted the connection in time"
        case aiohttp.ClientConnectorError() | aiohttp.InvalidURL():
            reason, what = "unreachable", f"No connection to {where}: {_why(error)}"
        case TimeoutError():
            reason, what = "timeout", f"The metadata service at {where} did not answer in time"
        case aiohttp.ClientPayloadError():
            reason, what = "truncated", f"The answer from {where} is incomplete or garbled"
        case OSError() | aiohttp.ClientConnectionError():
            reason, what = "reset", f"{where} closed the connection without an answer"
        case _:
            reason, what = "not-http", f"The answer from {where} is not HTTP: {error}"
    return SourceProblem(reason, sentence(what), status=status)


def _why(error: aiohttp.ClientError) -> str:
    """The system's own words; asyncio and aiohttp put an address in their place."""
    cause = getattr(error, "os_error", None) or OSError()
    said = cause.strerror or str(error)
    return os.strerror(cause.errno) if cause.errno and "Connect call failed" in said else said


def _where(url: str) -> str:
    """The endpoint for people to read: without the path, and without a password in it."""
    try:
        return str(URL(url).origin())
    except ValueError:
        return "the endpoint"
