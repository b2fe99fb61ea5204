"""Log-ins from the console: in memory, for half a day, and no longer than their token.

A browser sends a cookie to every port of a host, so a cookie alone proves nothing here. Each
session also has a key, which the page keeps where only its own port can read it.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.common.clock import Clock
from bridge.config import TokenSettings
from bridge.web.access.tokens import Caller

LIFE = 12 * 3600.0
CODE_LIFE = 600.0
MOST_FOR_ONE = 20
"""How many sessions a token may have; a new one ends the oldest."""
MOST_CODES = 20


class OpenedSession(NamedTuple):
    """What the browser gets, once: an id for its cookie, and a key for its page."""

    id: str
    key: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class _Session:
    """Times are monotonic, except *until*, which is Unix time and only shown."""

    token: str
    secret: bytes
    key: bytes
    ends: float
    until: float


@dataclass(slots=True)
class Sessions:
    """All sessions and one-time codes of one bridge; it keeps hashes of what it gave out."""

    clock: Clock = field(default_factory=Clock)
    _open: dict[bytes, _Session] = field(default_factory=dict)
    _codes: dict[bytes, tuple[str, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def open(self, token: TokenSettings) -> OpenedSession:
        """Begin a session with the rights of *token*. Raises OSError if its file is unreadable."""
        self._tidy()
        same = [each for each, one in self._open.items() if one.token == token.name]
        for oldest in same[: max(0, len(same) - MOST_FOR_ONE + 1)]:
            del self._open[oldest]
        name, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        ends, until = self.clock.monotonic() + LIFE, self.clock.timestamp() + LIFE
        made = _Session(token.name, _hash(token.token.get()), _hash(key), ends, until)
        self._open[_hash(name)] = made
        return OpenedSession(name, key, _caller(token, made))

    def find(self, name: str, key: str, tokens: Iterable[TokenSettings]) -> Caller | None:
        """The caller with this session, with the rights that its token has now."""
        hashed = _hash(name)
        found = self._open.get(hashed)
        if found is None or not hmac.compare_digest(found.key, _hash(key)):
            return None
        token = next((one for one in tokens if one.name == found.token), None)
        if token is None or self.clock.monotonic() >= found.ends or not _same(token, found):
            del self._open[hashed]
            return None
        return _caller(token, found)

    def end(self, name: str, key: str) -> None:
        found = self._open.get(_hash(name))
        if found is not None and hmac.compare_digest(found.key, _hash(key)):
            del self._open[_hash(name)]

    def issue_code(self, token: TokenSettings) -> tuple[str, float]:
        """A code that opens one session for *token*, and when it expires, as Unix time."""
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = token.name, self.clock.monotonic() + CODE_LIFE
        return code, self.clock.timestamp() + CODE_LIFE

    def redeem(self, code: str, tokens: Iterable[TokenSettings]) -> TokenSettings | None:
        """The token of a code, which is used up by this."""
        name, ends = self._codes.pop(_hash(code), (None, 0.0))
        if self.clock.monotonic() >= ends:
            return None
        return next((token for token in tokens if token.name == name), None)

    def _tidy(self) -> None:
        now = self.clock.monotonic()
        for each in [each for each, one in self._open.items() if now >= one.ends]:
            del self._open[each]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _same(token: TokenSettings, session: _Session) -> bool:
    """Whether the token still has the secret that the session began with."""
    try:
        return hmac.compare_digest(_hash(token.token.get()), session.secret)
    except (OSError, ValueError):
        return False


def _caller(token: TokenSettings, session: _Session) -> Caller:
    scopes = frozenset(token.scopes)
    return Caller(token.name, "http", scopes, by="session", expires=session.until)
