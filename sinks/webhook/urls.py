"""The URL that CloudEvents are posted to: parsed, checked, and shown without secrets."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from bridge.plugins import is_loopback

LONGEST = 2048
_LIKE_A_TOKEN = 12
"""Shorter parts of a path are not masked: they are ordinary words."""
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>\d{1,5}))?"
    r"(?P<rest>[/?][!$-;=?-\[\]_a-z~]*)?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to post. Only the origin is ever shown: paths and queries of webhooks are secrets."""

    url: str = field(repr=False)
    origin: str
    host: str
    secure: bool
    rest: str = field(repr=False)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The parts of the URL to mask: the receiver may repeat them."""
        path, _, query = self.rest.partition("?")
        values = [value for _, value in parse_qsl(query)]
        tokens = [part for part in path.split("/") if len(part) >= _LIKE_A_TOKEN]
        return tuple(text for text in (self.rest, path, query, *values, *tokens) if len(text) > 3)

    @property
    def holds_token(self) -> bool:
        """Whether its query authorizes it, as the webhook specification allows."""
        return any(name == "access_token" for name, _ in parse_qsl(self.rest.partition("?")[2]))


def read_url(text: str, *, insecure: bool = False, alone: bool = True, tls: bool = False) -> Target:
    """Raises ValueError, without quoting *text*.

    *insecure*: clear text may leave this machine; *alone*: no proxy elsewhere sees it; *tls*: there
    are settings for it, so it should be used.
    """
    authority = re.split(r"[/?#]", text.partition("://")[2], maxsplit=1)[0]
    if "@" in authority:
        raise ValueError("contains a user name; use bearer, basic or headers for credentials")
    if "#" in text:
        raise ValueError("contains a fragment (#…), which is never sent; remove it")
    match = _URL.fullmatch(text)
    port = int(match["port"] or 1) if match else 0
    if match is None or len(text) > LONGEST or not 0 < port < 65536:
        raise ValueError(
            "is not a URL to post to; write https://HOST/PATH,"
            f" with other characters percent-encoded and at most {LONGEST} in all"
        )
    host, secure = match["host"].strip("[]"), match["scheme"] == "https"
    if not secure and not insecure and not (is_loopback(host) and alone):
        raise ValueError(
            f"would be sent to {host} in clear text; write https://, or set insecure: true"
        )
    if tls and not secure:
        raise ValueError("begins with http://, so tls has no effect; write https://, or remove tls")
    origin = text[: match.start("rest")] if match["rest"] else text
    return Target(text, origin, host, secure, match["rest"] or "")
