"""The handshake of CloudEvents webhooks: does the receiver agree, and to how much; pure."""

import re
from collections import deque
from dataclasses import dataclass, field

from bridge.plugins import Unavailable
from sinks.webhook.errors import Response

SLOW = 10
"""Requests per minute to a receiver that does not know the handshake or has not agreed."""
MINUTE = 60.0
_RATE = re.compile(r"[1-9]\d{0,8}")


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the receiver agreed, and to how many requests per minute; None: any number."""

    given: bool
    rate: int | None = None


def request(origin: str) -> dict[str, str]:
    """The header that asks for consent, and shows it with each POST."""
    return {"WebHook-Request-Origin": origin}


def read_consent(answer: Response, origin: str) -> Consent:
    """The header decides, whatever the status is."""
    allowed = (answer.allowed_origin or "").strip().lower()
    if allowed not in {"*", origin.lower()}:
        return Consent(given=False, rate=SLOW)
    return Consent(given=True, rate=_agreed((answer.allowed_rate or "").strip()))


def _agreed(allowed: str) -> int | None:
    """What the receiver allows; None for any number, and little if the value cannot be read."""
    if allowed in {"", "*"}:
        return None
    return int(allowed) if _RATE.fullmatch(allowed) else SLOW


def refusal(consent: Consent, answer: Response, judged: object, mode: str) -> Unavailable | None:
    """Why nothing may be sent; None when sending is allowed, even slowly.

    A receiver that is busy or does not accept our credentials has not answered yet.
    """
    if consent.given:
        return None
    if isinstance(judged, Unavailable):
        return judged
    if mode == "optional":
        return None
    return Unavailable(
        f"it does not agree to the handshake (it answered {answer.status} to OPTIONS, without "
        "WebHook-Allowed-Origin for us); have it agree, or set handshake: optional or off"
    )


@dataclass(slots=True)
class Pace:
    """A sliding minute: up to *rate* requests may go out together, then none for a while."""

    rate: int
    _gone: deque[float] = field(default_factory=deque)

    def take(self, now: float, *, insist: bool = False) -> float:
        """0 when a request may go now, and counts it; else the seconds until one may."""
        while self._gone and self._gone[0] <= now - MINUTE:
            self._gone.popleft()
        if len(self._gone) >= self.rate and not insist:
            return self._gone[0] + MINUTE - now
        self._gone.append(now)
        return 0.0
