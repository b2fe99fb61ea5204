"""What the collector's answers mean, by the codes that Splunk documents; and what no answer is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.plugins import Unavailable
from sinks import _http

SLOW = 60.0
"""Seconds until another try at what somebody has to put right first."""
_SUCCESS, _NO_DATA = 0, 5
_TO_MEND = {
    1: "the token is disabled",
    2: "it got no token",
    3: "it does not take the token's form",
    4: "it does not know the token",
    7: "there is no such index for this token; correct index, or allow it to the token",
    10: "it misses the channel",
    11: "it does not take the channel",
    14: "the token does not acknowledge; turn that on in Splunk, or set acknowledge: false",
    16: "it does not allow this way of authorization",
}
_NEVER = {
    _NO_DATA: "it sees no data",
    6: "it cannot read the event",
    12: "it misses the event's content",
    13: "the event's content is blank",
    15: "it does not take the event's indexed fields",
}
_BY_STATUS = {
    401: "it does not accept the token",
    403: "it does not accept the token",
    404: "there is no HTTP Event Collector; correct url",
    407: "the proxy wants to know who we are",
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
    """All of it; `receipt` is what to ask for when it shall be indexed."""

    receipt: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """One event at least is not to be had; `number` says which, from 0 on, if it is known."""

    why: str
    number: int | None = None


Outcome = Accepted | Refused | Unavailable


def unanswered(error: BaseException, url: str) -> Unavailable:
    """Why a request to *url* had no answer."""
    return Unavailable(f"{url}: {_http.why(error)}")


def judge(answer: CollectorResponse, *secrets: str) -> Outcome:
    """What became of a request with events; *secrets* are not repeated."""
    code, status = answer.code, answer.status
    if status == 200 and code == _SUCCESS:
        return Accepted(_number(answer.said.get("ackId")))
    said = _words(answer, secrets)
    if status == 400 and code in _NEVER:
        return Refused(f"{_NEVER[code]} ({said})", _number(answer.said.get("invalid-event-number")))
    if status == 413:
        return Refused(f"it finds it too large ({said})")
    return _not_now(answer, said)


def takes_token(answer: CollectorResponse, *secrets: str) -> None:
    """An empty request gets past the token and no further. Raises `Unavailable` if not so far."""
    if answer.status == 400 and answer.code == _NO_DATA:
        return
    raise _not_now(answer, _words(answer, secrets))


def indexed(answer: CollectorResponse, *secrets: str) -> set[int]:
    """The receipts that are settled. Raises `Unavailable` when that is not what it says."""
    found = answer.said.get("acks")
    if answer.status != 200 or not isinstance(found, Mapping):
        raise _not_now(answer, _words(answer, secrets))
    return {int(name) for name, done in found.items() if done is True and name.isdecimal()}


def _not_now(answer: CollectorResponse, said: str) -> Unavailable:
    status = answer.status
    why = _TO_MEND.get(-1 if answer.code is None else answer.code) or _BY_STATUS.get(status)
    if why is not None and status < 500:
        return Unavailable(f"{why} ({said})", retry_after=SLOW)
    if 200 <= status < 400:
        # A portal, a login page, a redirect: whoever that is, it has not taken anything.
        return Unavailable(f"what answers is no HTTP Event Collector ({said})", retry_after=SLOW)
    asked = (answer.retry_after or "").strip()
    wait = float(asked) if _SECONDS.fullmatch(asked) else None
    return Unavailable(f"it cannot take it now ({said})", retry_after=wait)


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
