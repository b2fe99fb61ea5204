"""Who may do what, from a request's headers and the configured tokens; pure."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from bridge.config import Listen, TokenSettings
from bridge.config.models import Scope
from bridge.config.values import PublicUrl

Via = Literal["control", "http"]
ProvenBy = Literal["control", "token", "session", "certificate", "signature", "none"]
"""How a caller proves who it is."""
VOTES = "/api/v1/approvals"
SESSION = "/api/v1/session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and what the caller may do."""

    name: str
    via: Via
    scopes: frozenset[Scope]
    approver: str | None = None
    """The identity that a certificate proves; for a token, its name is looked up instead."""
    by: ProvenBy = "token"
    expires: float | None = None
    """When the session ends, as Unix time."""


ANONYMOUS = Caller("anonymous", "http", frozenset({"read"}), by="none")
"""The caller on loopback while no token is configured."""


def needed(method: str, path: str) -> Scope:
    """The scope for a request; what is neither reading nor voting needs the highest."""
    if method in SAFE_METHODS:
        return "read"
    return "approve" if (method, path) == ("POST", VOTES) else "operate"


def bearer(authorization: str | None) -> str | None:
    """The bearer token in an Authorization header, or None."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def who(
    presented: str, tokens: Iterable[TokenSettings]
) -> tuple[Caller | None, list[tuple[str, str]]]:
    """The caller with this token, and the tokens that cannot be read, each with the reason.

    Every token is compared in constant time, so that the response time reveals nothing.
    """
    given = presented.encode("utf-8", "surrogateescape")
    found: Caller | None = None
    unreadable = []
    for token in tokens:
        try:
            secret = token.token.get().encode()
        except (OSError, ValueError) as error:
            unreadable.append((token.name, str(error)))
            continue
        same = hmac.compare_digest(given, secret)
        if same and secret and found is None:
            found = Caller(token.name, "http", frozenset(token.scopes))
    return found, unreadable


def host_is_ours(hosts: list[str], listen: Listen, public: Sequence[PublicUrl] = ()) -> bool:
    """Whether the Host header names this bridge: a rebound DNS name must not reach loopback.

    The port is not compared: a forwarded port differs, and says nothing about the name.
    """
    if not listen.is_loopback and not public:
        return True
    name = _name(hosts)
    own = name in _LOOPBACK_NAMES or name == listen.host.lower()
    return own or _of_proxy(name, public) or (not listen.is_loopback and _is_address(name))


def origin_is_ours(
    origin: str | None, scheme: str, hosts: list[str], public: Sequence[PublicUrl] = ()
) -> bool:
    """Whether the page that sends this was served here; without an Origin it is not a browser.

    A page behind a proxy has the origin of a public URL, whatever Host the proxy sends.
    """
    if origin is None or origin.lower() in {url.origin for url in public}:
        return True
    if _of_proxy(_name(hosts), public):
        return False
    return [origin.lower()] == [f"{scheme}://{host}".lower() for host in hosts]


def _name(hosts: list[str]) -> str | None:
    """The name in the only Host header; None if there is no such name."""
    try:
        return urlsplit(f"//{hosts[0]}").hostname if len(hosts) == 1 else None
    except ValueError:
        return None


def _of_proxy(name: str | None, public: Sequence[PublicUrl]) -> bool:
    return any(name == url.host for url in public) and name not in _LOOPBACK_NAMES


def _is_address(name: str | None) -> bool:
    """Whether it is an IP address, which nobody can rebind."""
    try:
        return bool(ip_address(name or ""))
    except ValueError:
        return False
