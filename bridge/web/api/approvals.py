"""Votes over HTTP: accepted once they are in the journal, answered with their outcome."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import web

from bridge.approvals.intake import Unauthorized
from bridge.common.errors import Unavailable
from bridge.common.signatures import HEADERS
from bridge.common.spelling import marks_cloudevent
from bridge.core.ids import safe_id
from bridge.journal.views import outcomes, refusals
from bridge.journal.votes import said_by, votes_lately
from bridge.plugins import Delivery
from bridge.policy.attributes import matters
from bridge.policy.message import MalformedApproval, NotForUs, claimed
from bridge.policy.votes import LocalOutcome
from bridge.runtime.runtime import CALLER_ADDRESS
from bridge.web.access.authentication import CHALLENGE, SIGNED
from bridge.web.access.middleware import CALLER
from bridge.web.access.tokens import Caller
from bridge.web.api import shapes
from bridge.web.context import CONTEXT, WebContext
from bridge.web.problems import ProblemDetails, not_found

routes = web.RouteTableDef()
MOST = 200
PATH = "/api/v1/approvals"
_JSON = re.compile(r"application/(?:[^/]+\+)?json")
_BATCH = "application/cloudevents-batch+json"
_STATUS = {"unauthorized": 403, "rate-limited": 429, "resource-required": 400}
_PATIENCE = 10.0
_ORIGIN, _RATE = "WebHook-Request-Origin", "WebHook-Request-Rate"


@routes.post(PATH)
async def approve(request: web.Request) -> web.Response:
    """Answer 202 once the vote is in the journal, unless no part of it counts."""
    caller, context = CALLER.get(), request.app[CONTEXT]
    signed = caller is SIGNED
    await _turn(context, None if signed else caller, CALLER_ADDRESS.get())
    take = context.runtime.take_local
    if take is None:
        raise ProblemDetails(503, "The bridge is starting; try again.", Retry_After="1")
    delivery = Delivery(await request.read(), _headers(request), identity=caller.approver)
    name = None if signed or caller.approver else caller.name
    try:
        found = await take(delivery, caller.via, name)
    except (MalformedApproval, NotForUs) as error:
        reason = {"reason": "malformed", **_named(delivery)}
        raise ProblemDetails(400, f"This is not a valid approval: {error}.", more=reason) from None
    except Unauthorized as error:
        reason = {"reason": "unauthorized", **_named(delivery)}
        sentence = f"The signature does not prove the sender: {error}."
        raise ProblemDetails(401, sentence, more=reason, WWW_Authenticate=CHALLENGE) from None
    except Unavailable:
        sentence = "The journal cannot be written, so no approvals can be accepted now."
        raise ProblemDetails(503, sentence, Retry_After="1") from None
    return _answer(found)


def _named(delivery: Delivery) -> dict[str, str | None]:
    """The id of a message that was not taken, if it has one."""
    return {"approvalId": claimed(delivery.body, delivery.headers)}


@routes.get(PATH)
async def latest(request: web.Request) -> web.Response:
    """The latest votes and refusals, also those that this bridge does not publish."""
    runtime = request.app[CONTEXT].runtime
    cast, published = await runtime.journal.run(
        lambda store: (votes_lately(store, MOST + 1), refusals(store, MOST + 1))
    )
    told = shapes.approvals(cast, published, runtime.status.refusals.latest())
    return web.json_response({"approvals": told[:MOST], "more": len(told) > MOST})


@routes.get(PATH + "/{approvalId:.+}")
async def approval(request: web.Request) -> web.Response:
    """One approval. Its id may be a place in a log, such as topic/partition/offset."""
    runtime, given = request.app[CONTEXT].runtime, request.match_info["approvalId"]
    cast, told = await runtime.journal.run(
        lambda store: (said_by(store, given), outcomes(store, given))
    )
    kept = [one.cloudevent.envelope for one in reversed(runtime.status.refusals.latest())]
    told += [one for one in kept if one["data"]["approvalId"] == given]
    if not cast and not told:
        not_found(f"The journal has no approval {given[:128]!r} that counted or was answered.")
    body = {"approvalId": given, "votes": [shapes.vote(one) for one in cast], "outcomes": told}
    return web.json_response(body)


async def _turn(context: WebContext, caller: Caller | None, remote: str | None) -> None:
    """Wait for the caller's turn. Only an unverified caller may be refused for rate."""
    if caller is None:
        wait = context.limiter.delay(f"from {remote}", _PATIENCE)
    else:
        wait = context.limiter.delay(f"{caller.via} {caller.name}")
    await asyncio.sleep(wait)


def _headers(request: web.Request) -> list[tuple[str, bytes]]:
    """The headers that matter for an approval; attributes are percent-encoded over HTTP."""
    if not _is_json(request) or "Content-Encoding" in request.headers:
        raise ProblemDetails(415, "An approval must be one message in JSON, and not compressed.")
    return [
        (name.lower(), value.encode(errors="surrogateescape"))
        if name.lower() in {"content-type", *HEADERS}
        else (name.lower(), unquote_to_bytes(value.encode(errors="surrogateescape")))
        for name, value in request.headers.items()
        if matters(name)
    ]


def _is_json(request: web.Request) -> bool:
    """Whether it says so. A binary CloudEvent may leave that out: its headers are a sign too."""
    if not request.headers.get("Content-Type"):
        return any(marks_cloudevent(name) for name in request.headers)
    return bool(_JSON.fullmatch(request.content_type)) and request.content_type != _BATCH


def _answer(found: Sequence[LocalOutcome]) -> web.Response:
    approval = found[0].approval_id
    body = {"approvalId": approval, "outcomes": [_outcome(one) for one in found]}
    first = found[0]
    if all(one.outcome == "refused" for one in found):
        status = _STATUS.get(first.reason or "", 409)
        problem = ProblemDetails(
            status,
            f"This vote does not count: {first.detail}.",
            more={"reason": first.reason, **body},
        )
        if status == 429:
            problem.headers["Retry-After"] = "60"
        raise problem
    return web.json_response(body, status=202)


def _outcome(one: LocalOutcome) -> dict[str, Any]:
    return {
        "eventId": one.event_id,
        "outcome": one.outcome,
        "reason": one.reason,
        "detail": one.detail,
        "href": f"/api/v1/events/{safe_id(one.event_id)}",
    }


@routes.options(PATH)
async def consent(request: web.Request) -> web.Response:
    """The handshake of CloudEvents webhooks: tells a sender whether and how often it may send."""
    context, origin = request.app[CONTEXT], request.headers.get(_ORIGIN)
    if origin is None:
        return web.Response(status=204, headers={"Allow": "POST, OPTIONS"})
    known = {one.casefold() for one in context.runtime.config.http.webhook_origins}
    if origin.casefold() not in known:
        raise ProblemDetails(403, "This origin is not in http.webhook_origins.")
    asked = request.headers.get(_RATE, str(context.limiter.per_minute))
    if not (asked.isascii() and asked.isdigit() and 0 < len(asked) < 10 and int(asked)):
        raise ProblemDetails(400, f"{_RATE} must be a whole number of requests per minute.")
    allowed = {
        "Allow": "POST, OPTIONS",
        "WebHook-Allowed-Origin": origin,
        "WebHook-Allowed-Rate": str(min(int(asked), context.limiter.per_minute)),
    }
    return web.Response(status=200, headers=allowed)
