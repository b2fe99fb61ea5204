"""What an HTTP answer of the metadata service means, as values; pure, never an exception."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from bridge.common.strictjson import decode
from bridge.core.model import Document, Instance, parse_document, parse_instance, parse_time

LONGEST_WAIT = 10.0
_DETAIL = 400
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_MEANINGS = {
    400: ("bad-request", "it considers the request malformed; check source.api_version"),
    401: ("forbidden", ""),
    403: ("forbidden", ""),
    404: ("not-found", "it has no scheduled events at this address; is this an Azure VM?"),
    405: ("method-not-allowed", "it does not support this method; check source.endpoint"),
    410: ("updating", "it is being updated, which takes up to 70 seconds"),
    429: ("throttled", "the programs on this VM send more than 5 requests per second in total"),
}
_OF_POST = {400: "it considers the request malformed, or the scheduled event is gone"}
_OF_INSTANCE = {
    400: "it considers the request malformed",
    404: "it has no instance metadata at this address; is this an Azure VM?",
}
_PROTOCOL = (
    "Azure's Metadata Security Protocol seems to be on and does not list this program; add the "
    "bridge's user to the VM's access control profile, for /metadata/scheduledevents and "
    "/metadata/instance"
)


class Answer(NamedTuple):
    """The service answered. The document is None when it is unchanged (304) or the body empty."""

    document: Document | None
    empty: bool = False
    date: datetime | None = None
    status: int = 200


class Accepted(NamedTuple):
    """The service accepted our StartRequests. That does not mean that the event started."""

    date: datetime | None = None


class SourceProblem(NamedTuple):
    """Why there is no usable answer. `reason` is a stable word, `detail` a sentence."""

    reason: str
    detail: str
    status: int | None = None
    retry_after: float | None = None
    configuration: bool = False
    date: datetime | None = None


REASONS = (
    "unreachable", "timeout", "reset", "truncated", "too-large", "not-http", "not-json",
    "wrong-shape", "bad-request", "forbidden", "not-found", "method-not-allowed", "updating",
    "throttled", "redirected", "server-error", "unexpected-status",
)  # fmt: skip
"""Why a poll has no usable answer."""
OUTDATED = SourceProblem("outdated", "The document has changed since this was decided.")
"""No request was sent: the next document brings news and a new decision."""
WITHDRAWN = SourceProblem("withdrawn", "When the request could be sent, no event was left in it.")
"""No request was sent: what was decided before is no longer allowed."""


class Reply(NamedTuple):
    """What came over the wire. `broken` says why the body could not be read completely."""

    status: int
    body: bytes = b""
    date: datetime | None = None
    retry_after: float | None = None
    broken: SourceProblem | None = None


def read_document(reply: Reply, api_version: str) -> Answer | SourceProblem:
    if reply.status == 304:
        return Answer(None, date=reply.date, status=304)
    if reply.status == 200 and reply.broken is None and not reply.body:
        return Answer(None, empty=True, date=reply.date)
    payload = _payload(reply)
    if isinstance(payload, SourceProblem):
        return payload
    try:
        document = parse_document(payload.value, api_version=api_version)
    except (ValueError, OverflowError) as error:
        return _unusable(reply, "wrong-shape", error)
    return Answer(document, date=reply.date)


def read_instance(reply: Reply) -> Instance | SourceProblem:
    payload = _payload(reply, _OF_INSTANCE)
    if isinstance(payload, SourceProblem):
        return payload
    try:
        return parse_instance(payload.value)
    except ValueError as error:
        return _unusable(reply, "wrong-shape", error)


def read_accepted(reply: Reply) -> Accepted | SourceProblem:
    """Ignore the body of a 200: it is not documented."""
    return Accepted(reply.date) if reply.status == 200 else problem(reply, posted=True)


def problem(
    reply: Reply, *, posted: bool = False, meanings: Mapping[int, str] | None = None
) -> SourceProblem:
    """Explain a status in words, with the service's own message; *meanings* go first."""
    reason, meaning = _meaning(reply.status)
    meaning = (_OF_POST if posted else meanings or {}).get(reply.status, meaning)
    said = _said(reply.body)
    why = "; ".join(part for part in (meaning, said and f"it says: {said}") if part)
    return SourceProblem(
        reason,
        sentence(f"The metadata service answered {reply.status}: {why}"),
        status=reply.status,
        retry_after=reply.retry_after,
        # A POST may be refused because its scheduled event has just ended, which is no mistake.
        configuration=reply.status == 405 or (reply.status == 400 and not posted),
        date=reply.date,
    )


def sentence(text: str) -> str:
    """One line of limited length that ends in a full stop, whatever the server sent."""
    line = _BLANKS.sub(" ", text).encode("utf-8", "replace").decode().strip().rstrip(".")
    return f"{line}." if len(line) < _DETAIL else f"{line[: _DETAIL - 1]}…"


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds to wait, at most ten, from a number or an HTTP date; else None."""
    text = (text or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_WAIT)
    moment = parse_date(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), LONGEST_WAIT)


def parse_date(text: str | None) -> datetime | None:
    """A `Date` header in UTC; None when it is absent or not a date."""
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        return None


def received(
    status: int,
    body: bytes,
    *,
    date: str | None = None,
    retry_after: str | None = None,
    broken: SourceProblem | None = None,
) -> Reply:
    """Read the headers; an HTTP date in Retry-After is relative to the service's clock."""
    moment = parse_date(date)
    wait = parse_retry_after(retry_after, moment or datetime.now(UTC))
    return Reply(status, body, moment, wait, broken)


class _Payload(NamedTuple):
    value: object


def _payload(reply: Reply, meanings: Mapping[int, str] | None = None) -> _Payload | SourceProblem:
    if reply.status != 200:
        return problem(reply, meanings=meanings)
    if reply.broken is not None:
        return reply.broken._replace(date=reply.date)
    try:
        return _Payload(decode(reply.body))
    except ValueError as error:
        return _unusable(reply, "not-json", error)


def _unusable(reply: Reply, reason: str, why: object) -> SourceProblem:
    what = {"not-json": "something that is not JSON", "wrong-shape": "unexpected JSON"}
    text = f"The metadata service answered 200 with {what[reason]}: {why}"
    return SourceProblem(reason, sentence(text), status=reply.status, date=reply.date)


def _meaning(status: int) -> tuple[str, str]:
    reason, meaning = _MEANINGS.get(status, ("", ""))
    if reason:
        return reason, meaning or _PROTOCOL
    if 300 <= status < 400:
        return "redirected", "it redirects, and the bridge never follows redirects"
    if 500 <= status < 600:
        return "server-error", "it has an internal problem"
    return "unexpected-status", "Azure does not use this status here; check source.endpoint"


def _said(body: bytes) -> str:
    """The `error` and `newest-versions` of an error body, if it is one of Azure's."""
    try:
        payload = decode(body)
    except ValueError:
        return ""
    if not isinstance(payload, dict):
        return ""
    error = payload.get("error")
    words = error.get("message") if isinstance(error, dict) else error
    said = words if isinstance(words, str) else ""
    newest = payload.get("newest-versions")
    if isinstance(newest, list) and newest:
        said += f" (newest versions: {', '.join(str(version) for version in newest[:5])})"
    return said.strip()
