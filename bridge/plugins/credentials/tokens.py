"""Tokens from a server: fetched over HTTP, kept until shortly before they expire, never shown."""

import asyncio
import re
import ssl
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from bridge.common.errors import Unavailable
from bridge.common.fields import Settings
from bridge.common.strictjson import read_object

LARGEST_ANSWER = 64 * 1024
TIMEOUT = 10.0
SHORTEST = 60.0
"""How long a token is assumed to be valid when its server does not say."""
_MARGIN = 300.0
_PRINTABLE = re.compile(r"[!-~]+")
_RETRY_AFTER = re.compile(r"\d{1,5}")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A bearer token, and when it was issued and expires, by the wall clock."""

    value: str = field(repr=False)
    given: float
    ends: float

    @property
    def renew_at(self) -> float:
        """A fifth of its lifetime before it expires, at most five minutes."""
        return self.ends - min(_MARGIN, (self.ends - self.given) / 5)


class TokenSource(Settings):
    """Where tokens come from. Equal settings share one token."""

    async def token(self) -> str:
        """A token that stays valid for a while. Raises `Unavailable` when there is none."""
        return await self._kept().get(self.fetch)

    def forget(self) -> None:
        """Discard the token, because a server refused it: the next call fetches a new one."""
        self._kept().token = None

    def _kept(self) -> "_Kept":
        return _shared.setdefault(asyncio.get_running_loop(), {}).setdefault(self, _Kept())

    @abstractmethod
    async def fetch(self) -> AccessToken:
        """Ask the server, once. Raises `Unavailable`."""


@dataclass(slots=True)
class _Kept:
    """The last token; callers during a renewal wait for the one request."""

    token: AccessToken | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _failed: tuple[float, Unavailable] | None = None

    async def get(self, fetch: Callable[[], Awaitable[AccessToken]]) -> str:
        came = time.monotonic()
        async with self._lock:
            if self.token is None or time.time() >= self.token.renew_at:
                self.token = await self._renewed(came, fetch)
            return self.token.value

    async def _renewed(
        self, came: float, fetch: Callable[[], Awaitable[AccessToken]]
    ) -> AccessToken:
        try:
            if self._failed and self._failed[0] >= came:
                raise self._failed[1]
            return await fetch()
        except Unavailable as error:
            self._failed = (time.monotonic(), error)
            if self.token is not None and time.time() < self.token.ends:
                return self.token
            raise Unavailable(str(error), retry_after=error.retry_after) from None


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[TokenSource, _Kept]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """A token server's answer: its JSON object, or an empty one."""

    status: int
    said: Mapping[str, Any] = field(repr=False)
    retry_after: float | None = None

    def token(self, who: str) -> AccessToken:
        """The token in it. Raises `Unavailable` when there is no usable one."""
        value, now = self.said.get("access_token"), time.time()
        if not isinstance(value, str) or not _PRINTABLE.fullmatch(value):
            raise Unavailable(f"{who} answered without an access token")
        return AccessToken(value, now, now + _seconds(self.said.get("expires_in")))

    def refusal(self, who: str, *secrets: str) -> Unavailable:
        """The server's own message, in one line; without our *secrets*, if it repeats them."""
        words = [self.said.get(key) for key in ("error", "error_description")]
        said = ": ".join(" ".join(word.split()) for word in words if isinstance(word, str))
        for secret in secrets:
            said = said.replace(secret, "***")
        why = f"{who} answered {self.status}" + (f" ({said[:300]})" if said else "")
        return Unavailable(why, retry_after=self.retry_after)


async def ask(
    method: str,
    url: str,
    who: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> TokenResponse:
    """One request: no proxy, no redirect, an answer of limited size in limited time."""
    # Imported here: most configurations need no token.
    import aiohttp  # noqa: PLC0415  only for those who fetch tokens
    from yarl import URL  # noqa: PLC0415  only for those who fetch tokens

    options: dict[str, Any] = {"trust_env": False, "timeout": aiohttp.ClientTimeout(TIMEOUT)}
    try:
        async with (
            aiohttp.ClientSession(**options, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(
                method,
                URL(url, encoded=True),
                data=form,
                headers={"Accept": "application/json", **(headers or {})},
                allow_redirects=False,
                ssl=tls if tls is not None else True,
            ) as answer,
        ):
            said = read_object(await _bounded(answer.content))
            return TokenResponse(answer.status, said, _wait(answer.headers.get("Retry-After")))
    except TimeoutError:
        raise Unavailable(f"{who} did not answer within {TIMEOUT:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise Unavailable(f"{who} cannot be reached: {why}") from None


async def _bounded(content: Any) -> bytes:
    body = bytearray()
    async for part in content.iter_chunked(LARGEST_ANSWER):
        body += part
        if len(body) > LARGEST_ANSWER:
            raise ValueError(f"it answered with more than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _seconds(value: object) -> float:
    """Azure writes numbers as text."""
    try:
        seconds = float(value) if isinstance(value, str | int | float) else SHORTEST
    except ValueError:
        return SHORTEST
    return seconds if 0 < seconds < 366 * 86400 else SHORTEST


def _wait(header: str | None) -> float | None:
    return float(header) if header and _RETRY_AFTER.fullmatch(header) else None
