"""What an HTTP answer, or none, means for the posted CloudEvents."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from bridge.plugins import Gone, Rejected, Unavailable
from sinks import _http

LONGEST_PAUSE = 3600.0
_WORDS = 200
_SECONDS = re.compile(r"\d{1,10}")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_CREDENTIALS = {401, 403, 407}
_OF_ENDPOINT = {*_CREDENTIALS, 410, 429}


@dataclass(frozen=True, slots=True)
class Response:
    """A status, and the headers that matter; None where a header is absent."""

    status: int
    body: bytes = field(default=b"", repr=False)
    retry_after: str | None = None
    date: str | None = None
    location: str | None = None
    allowed_origin: str | None = None
    allowed_rate: str | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """The result, and whether it concerns the whole endpoint: then the sink sends nothing more."""

    result: Unavailable | Rejected | None
    halts: bool = False


def unanswered(error: BaseException, where: str, *, anonymous: bool = False) -> Unavailable:
    """Why a request got no answer; *where* is the receiver.

    With TLS 1.3 a receiver that requires a client certificate may just close the connection,
    so the sentence for an *anonymous* client mentions that.
    """
    why = _http.why(error)
    if anonymous and why in {_http.BROKEN, _http.HUNG_UP}:
        why += "; does it need a client certificate?"
    return Unavailable(f"{where}: {why}")


def judge(answer: Response, now: datetime, hidden: Iterable[str] = ()) -> Meaning:
    """*hidden* are our secrets, which the answer may repeat."""
    status = answer.status
    if 200 <= status < 300:
        return Meaning(None)
    said = f"it answered {status}{_words(answer.body, hidden)}"
    if status in _OF_ENDPOINT or (status == 503 and answer.retry_after is not None):
        return Meaning(_of_endpoint(answer, said, now), halts=True)
    if 300 <= status < 400:
        return Meaning(Rejected(_moved(answer)))
    never = 400 <= status < 500 and status != 408
    return Meaning(Rejected(said) if never else Unavailable(said))


def _of_endpoint(answer: Response, said: str, now: datetime) -> Unavailable:
    """Answers that concern every CloudEvent, not just one."""
    if answer.status == 410:
        return Gone(f"{said}: it accepts no more CloudEvents")
    if answer.status in _CREDENTIALS:
        who = "the proxy" if answer.status == 407 else "it"
        return Unavailable(f"{said}: {who} does not accept our credentials, or requires some")
    wait = pause(answer, now)
    if wait is None:
        return Unavailable(said)
    return Unavailable(f"{said} and asks us to wait {wait:g} s", retry_after=wait)


def pause(answer: Response, now: datetime) -> float | None:
    """Seconds that the receiver asks to wait, by its own clock if it sends a date, or None."""
    asked = (answer.retry_after or "").strip()
    if _SECONDS.fullmatch(asked):
        return min(float(asked), LONGEST_PAUSE)
    until = _moment(asked)
    if until is None:
        return None
    left = (until - (_moment(answer.date) or now)).total_seconds()
    return min(max(left, 0.0), LONGEST_PAUSE)


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moved(answer: Response) -> str:
    """The target's host only: the rest of a URL may contain secrets."""
    try:
        host = urlsplit(answer.location or "").hostname or ""
    except ValueError:
        host = ""
    where = f" and points to {host}" if _HOST.fullmatch(host) else ""
    return f"it answered {answer.status}{where}; the sink follows no redirects, so correct url"


def _words(body: bytes, hidden: Iterable[str]) -> str:
    """The first line of its body: short, printable, without our secrets."""
    text = body.decode("utf-8", "replace")
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, "***")
    lines = (" ".join(_printable(line).split()) for line in text.splitlines())
    first = next((line for line in lines if line), "")
    if len(first) > _WORDS:
        first = f"{first[:_WORDS]}…"
    return f" ({first})" if first else ""


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else " " for character in line)
