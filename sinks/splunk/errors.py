"""What the collector's answers mean, by the codes that Splunk documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.plugins import Unavailable
from sinks import _http

SLOW = 60.0
"""Seconds until the next try after an error that an operator has to fix."""
_SUCCESS, _NO_DATA = 0, 5
_TO_FIX = {
    1: "the token is disabled",
    2: "it got no token",
    3: "it does not accept the form of the token",
    4: "it does not know the token",
    7: "this token has no such index; correct index, or allow it for the token",
    10: "the channel is missing",
    11: "it does not accept the channel",
    14: "the token does not acknowledge; enable that in Splunk, or set acknowledge: false",
    16: "it does not allow this kind of authorization",
}
_NEVER = {
    _NO_DATA: "it got no data",
    6: "it cannot read the event",
    12: "the event has no content",
    13: "the event's content is blank",
    15: "it does not accept the event's indexed fields",
}
_BY_STATUS = {
    401: "it does not accept the token",
    403: "it does not accept the token",
    404: "this is not an HTTP Event Collector; correct url",
    407: "the proxy requires authentication",
}
_WORDS = 200
_SECONDS = re.compile(r"\d{1,5}")


@dataclass(frozen=True, slots=True)
class CollectorResponse:
    """A status, the JSON object that came with it (else an empty one), and `Retry-After`."""

    status: int
    said: Mapping[str, Any] = field(default_factory=dict)
    retry_after: str | None = None

    @property
    def code(self) -> int | None:
        return _number(self.said.get("code"))


@dataclass(frozen=True, slots=True)
class Accepted:
    """All events were accepted; `receipt` is what to ask for until they are indexed."""

    receipt: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """At least one event is rejected; `number` says which, from 0, if it is known."""

    why: str
    number: int | None = None


Outcome = Accepted | Refused | Unavailable


def unanswered(error: BaseException, url: str) -> Unavailable:
    """Why a request to *url* got no answer."""
    return Unavailable(f"{url}: {_http.why(error)}")


def judge(answer: CollectorResponse, *secrets: str) -> Outcome:
    """The result of a request with events; *secrets* are masked."""
    code, status = answer.code, answer.status
    if status == 200 and code == _SUCCESS:
        return Accepted(_number(answer.said.get("ackId")))
    said = _words(answer, secrets)
    if status == 400 and code in _NEVER:
        return Refused(f"{_NEVER[code]} ({said})", _number(answer.said.get("invalid-event-number")))
    if status == 413:
        return Refused(f"it says the event is too large ({said})")
    return _not_now(answer, said)


def takes_token(answer: CollectorResponse, *secrets: str) -> None:
    """An empty request passes the token check only. Raises `Unavailable` if it does not."""
    if answer.status == 400 and answer.code == _NO_DATA:
        return
    raise _not_now(answer, _words(answer, secrets))


def indexed(answer: CollectorResponse, *secrets: str) -> set[int]:
    """The settled receipts. Raises `Unavailable` for any other answer."""
    found = answer.said.get("acks")
    if answer.status != 200 or not isinstance(found, Mapping):
        raise _not_now(answer, _words(answer, secrets))
    return {int(name) for name, done in found.items() if done is True and name.isdecimal()}


def _not_now(answer: CollectorResponse, said: str) -> Unavailable:
    status = answer.status
    why = _TO_FIX.get(-1 if answer.code is None else answer.code) or _BY_STATUS.get(status)
    if why is not None and status < 500:
        return Unavailable(f"{why} ({said})", retry_after=SLOW)
    if 200 <= status < 400:
        # A portal, a login page, a redirect: it has not accepted anything.
        return Unavailable(f"the server is not an HTTP Event Collector ({said})", retry_after=SLOW)
    asked = (answer.retry_after or "").strip()
    wait = float(asked) if _SECONDS.fullmatch(asked) else None
    return Unavailable(f"it cannot accept it now ({said})", retry_after=wait)


def _words(answer: CollectorResponse, secrets: tuple[str, ...]) -> str:
    """Its status, and its own text in one line of bounded length."""
    text = answer.said.get("text")
    said = str(text) if isinstance(text, str) else ""
    for secret in secrets:
        said = said.replace(secret, "***")
    line = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:_WORDS]
    return f"{answer.status}: {line}" if line else str(answer.status)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
