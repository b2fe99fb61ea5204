"""A request body that is chosen last: once the connection is there and the request can leave."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientRequest, ClientResponse, hdrs
from aiohttp.connector import Connection


@dataclass(frozen=True, slots=True)
class LateBody:
    """`choose` returns the body when it can be written immediately, or None to send nothing."""

    choose: Callable[[], Awaitable[bytes | None]]


class NotSent(Exception):
    """No byte of the request was sent. `error` is what `choose` raised, if it did."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("the request was not sent")
        self.error = error


class LateRequest(ClientRequest):
    """A request whose data may be a `LateBody`; it still has a Content-Length.

    aiohttp calls `send` with a live connection, and writes the headers only in there.
    """

    _late: LateBody | None = None

    def update_body_from_data(self, body: Any, _stacklevel: int = 3) -> None:
        if isinstance(body, LateBody):
            self._late, body = body, None
        super().update_body_from_data(body)

    async def send(self, conn: Connection) -> ClientResponse:
        if self._late is not None:
            body = await self._chosen(self._late, conn)
            self.headers.popall(hdrs.CONTENT_LENGTH, None)
            super().update_body_from_data(body)
        return await super().send(conn)

    @staticmethod
    async def _chosen(late: LateBody, conn: Connection) -> bytes:
        error = None
        try:
            body = await late.choose()
        except Exception as raised:  # noqa: BLE001  passed on as it is: it is not the server's
            body, error = None, raised
        if body is None:
            conn.release()
            raise NotSent(error)
        return body
