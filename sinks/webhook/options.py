"""Parts of a webhook's settings: headers, user and password, proxy, signing keys."""

import base64
import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from bridge.plugins import Secret, Settings, is_loopback, read_key
from sinks.webhook.urls import read_url

MOST = 50
"""The largest number of headers."""
MOST_KEYS = 4
LONGEST = 8192
"""The most characters in the value of a header."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[!-~](?:[ !-~]*[!-~])?")
_USERNAME = re.compile(r"[^:\x00-\x1f\x7f]{1,255}")
_OURS = {
    *("accept-encoding", "connection", "content-encoding", "content-length", "content-type"),
    *("expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "user-agent"),
}
_OUR_PREFIXES = ("ce-", "webhook-")


def check_name(name: object) -> str:
    """Return *name*. Raises ValueError when it is not a header, or one that the bridge sets."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a header name; write it as in X-Team")
    if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
        raise ValueError(f"the bridge sets {name} itself; leave it out")
    return name


def check_value(value: str, what: str) -> str:
    """Return *value*. Raises ValueError when it could break out of its header."""
    if len(value) > LONGEST or not _VALUE.fullmatch(value):
        raise ValueError(
            f"{what} must be visible ASCII characters on one line, with spaces only between them,"
            f" and at most {LONGEST}"
        )
    return value


def basic(username: str, password: str) -> str:
    """RFC 7617, in UTF-8."""
    pair = f"{username}:{password}".encode()
    return f"Basic {base64.b64encode(pair).decode('ascii')}"


class Basic(Settings):
    """Basic authentication."""

    username: str
    password: Secret

    @field_validator("username")
    @classmethod
    def _one_name(cls, username: str) -> str:
        if not _USERNAME.fullmatch(username):
            raise ValueError("must be text without a colon and without control characters")
        return username


class Proxy(Settings):
    """An HTTP proxy. The bridge never reads proxy variables of the environment."""

    url: str = Field(description="http://HOST:PORT")
    username: str | None = None
    password: Secret | None = None

    @field_validator("url")
    @classmethod
    def _plain(cls, url: str) -> str:
        try:
            target = read_url(url.rstrip("/"), insecure=True)
        except ValueError:
            target = None
        if target is None or target.secure or target.rest:
            raise ValueError("is not a proxy; write http://HOST:PORT, without a password")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("takes username and password together, or neither")
        if self.username is not None and not _USERNAME.fullmatch(self.username):
            raise ValueError("username must be text without a colon or control characters")
        return self

    @property
    def near(self) -> bool:
        return is_loopback(read_url(self.url, insecure=True).host)


def _proxy(value: object) -> object:
    return {"url": value} if isinstance(value, str) else value


def _or_url(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [*schema["anyOf"], {"type": "string"}]


def _keys(value: object) -> object:
    """One key, or several during a rotation; keys written in the configuration are tested."""
    keys = value if isinstance(value, list | tuple) else [value]
    if not 0 < len(keys) <= MOST_KEYS:
        raise ValueError(f"takes one key, or a list of at most {MOST_KEYS}")
    for key in keys:
        if isinstance(key, str) and not read_key(key).private:
            raise ValueError("a public key (whpk_) cannot sign; give the private one (whsk_)")
    return tuple(keys)


def _or_one(schema: dict[str, Any]) -> None:
    several = {key: schema.pop(key) for key in ("type", "items") if key in schema}
    bounds = {"minItems": 1, "maxItems": MOST_KEYS}
    schema["anyOf"] = [several["items"], {**several, **bounds}]
    schema.pop("default", None)


Keys = Annotated[
    tuple[Secret, ...],
    BeforeValidator(_keys),
    Field(
        description="signs by Standard Webhooks: whsec_… or whsk_…; several during a rotation",
        json_schema_extra=_or_one,
    ),
]
"""How to write `secret`: one key, or a list."""

ProxyOption = Annotated[
    Proxy | None,
    BeforeValidator(_proxy),
    Field(
        description="http://HOST:PORT, or {url, username, password}",
        json_schema_extra=_or_url,
    ),
]
"""How to write `proxy`: a URL, or a mapping."""
