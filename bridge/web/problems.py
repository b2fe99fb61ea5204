"""Errors as problem documents (RFC 9457): one sentence, without internal details."""

import json
import logging
import sqlite3
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NoReturn

from aiohttp import web
from aiohttp.typedefs import Handler

from bridge.journal import SetAside

log = logging.getLogger(__name__)

_SENTENCES = {
    404: "There is nothing at this path; GET /api/v1 lists what there is.",
    405: "This path does not support this method.",
    413: "The body is larger than 64 KiB.",
}
_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")


class ProblemDetails(Exception):
    """Ends a request with *status* and a sentence for the caller; *more* is for programs."""

    def __init__(
        self, status: int, detail: str, *, more: Mapping[str, Any] | None = None, **headers: str
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.more = more or {}
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def not_found(what: str) -> NoReturn:
    raise ProblemDetails(404, what)


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure into a problem document, unless the response has begun."""
    try:
        return await handler(request)
    except ProblemDetails as problem:
        return document(problem.status, str(problem), problem.headers, problem.more)
    except web.HTTPException as error:
        kept = {name: error.headers[name] for name in _KEPT if name in error.headers}
        return document(error.status, _SENTENCES.get(error.status, error.reason), kept)
    except (SetAside, sqlite3.Error) as error:
        log.warning("http.journal_unavailable", extra={"path": request.path, "error": str(error)})
        again = {"Retry-After": "1"}
        return document(503, "The journal cannot be used at the moment; try again.", again)
    except ConnectionError:
        raise
    except Exception:
        log.exception("http.failed", extra={"path": request.path})
        if request.writer.output_size:
            raise
        return document(500, "The bridge failed to answer; its log says more.")


def document(
    status: int,
    detail: str,
    headers: dict[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> web.Response:
    body = {
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **(more or {}),
    }
    return web.Response(
        status=status,
        headers=headers,
        text=json.dumps(body, ensure_ascii=False) + "\n",
        content_type="application/problem+json",
    )
