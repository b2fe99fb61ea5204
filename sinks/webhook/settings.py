"""The keys of a webhook: where to post, in which shape, and who we are."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from bridge.plugins import (
    ManagedIdentity,
    OAuth,
    Place,
    Secret,
    Settings,
    SinkSettings,
    TLSOption,
    TokenSource,
    Unavailable,
    is_loopback,
    read_key,
    read_secret,
)
from sinks.webhook.headers import MOST, check_name, check_value
from sinks.webhook.urls import Target, read_url

MOST_KEYS = 4
_ORIGIN = re.compile(r"[A-Za-z0-9{](?:[A-Za-z0-9._{}-]{0,251}[A-Za-z0-9}])?")
_USERNAME = re.compile(r"[^:\x00-\x1f\x7f]{1,255}")


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
    """An HTTP proxy on the way; proxy variables of the environment are never read."""

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
            raise ValueError("is not a proxy; write http://HOST:PORT, and no password in it")
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


def _keys(value: object) -> object:
    """One key, or several while they are exchanged; those that stand in the file are tried."""
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


class WebhookSettings(SinkSettings):
    """What is posted where, and how."""

    type: Literal["webhook"]
    insecure: bool = Field(
        default=False, description="http:// to another host than loopback is what you want"
    )
    proxy: Annotated[Proxy | None, BeforeValidator(_proxy)] = Field(
        None, description="http://HOST:PORT, or {url, username, password}"
    )
    url: Secret = Field(description="https://HOST/PATH; may hold {vm_name} and its like")
    mode: Literal["structured", "binary", "batch"] = Field(
        "structured",
        description="structured: all in the body; binary: attributes in headers; batch: several",
    )
    batch_size: int = Field(50, ge=1, le=500, description="CloudEvents in one request, at most")
    concurrency: int = Field(8, ge=1, le=64, description="requests at the same time, at most")
    secret: Annotated[tuple[Secret, ...], BeforeValidator(_keys)] = Field(
        (),
        description="signs by Standard Webhooks: whsec_… or whsk_…; several while they change",
        json_schema_extra=_or_one,
    )
    headers: Mapping[str, Secret] = Field({}, description="to add to each request")
    bearer: Secret | None = Field(None, description="a token for Authorization")
    basic: Basic | None = None
    oauth: OAuth | None = Field(None, description="a token by client credentials")
    managed_identity: ManagedIdentity | None = Field(
        None, description="a token for the VM's own Azure identity"
    )
    tls: TLSOption = None
    handshake: Literal["off", "optional", "required"] = Field(
        "off", description="ask the receiver for its consent first, as CloudEvents webhooks do"
    )
    origin: str | None = Field(
        None, description="handshake: the DNS name of the sender; may hold {vm_name} and its like"
    )
    rate: int | None = Field(None, ge=1, le=100_000, description="handshake: requests a minute")

    @field_validator("url", mode="before")
    @classmethod
    def _known(cls, url: object, info: ValidationInfo) -> object:
        """A URL in a file is read when it is needed, and judged by the same rules."""
        if isinstance(url, str):
            filled = re.sub(r"\{[^{}]*\}", "_", Place.validate(url))
            read_url(filled, **_allowances(info.data))
        return url

    @field_validator("headers", mode="before")
    @classmethod
    def _harmless(cls, headers: object) -> object:
        if not isinstance(headers, Mapping):
            return headers
        names = [check_name(name).lower() for name in headers]
        if len(set(names)) < len(names) or len(names) > MOST:
            raise ValueError(f"must be different headers, whatever their case, and at most {MOST}")
        for name, value in headers.items():
            if isinstance(value, str):
                check_value(value, f"the value of {name}")
        return headers

    @field_validator("bearer", mode="before")
    @classmethod
    def _printable(cls, token: object) -> object:
        return check_value(token, "a token") if isinstance(token, str) and token else token

    @field_validator("origin")
    @classmethod
    def _dns_name(cls, origin: str | None) -> str | None:
        if origin is not None and not _ORIGIN.fullmatch(Place.validate(origin)):
            raise ValueError("is not a DNS name; write it as in bridge.example.com")
        return origin

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        given = self.model_fields_set
        several = [name for name in _AUTHORIZATIONS if getattr(self, name) is not None]
        several += [name for name in self.headers if name.lower() == "authorization"]
        wrong = [
            (len(several) > 1, f"{' and '.join(several)} each set Authorization; keep one"),
            (self.secret and self.mode != "structured", _SIGNED),
            (self.format is not None and self.mode != "structured", _FORMATTED),
            (self.mode != "batch" and "batch_size" in given, "batch_size is for mode: batch"),
            (self.handshake != "off" and self.origin is None, _ORIGIN_NEEDED),
            (self.handshake == "off" and (self.origin or self.rate), _NO_HANDSHAKE),
        ]
        for is_so, sentence in wrong:
            if is_so:
                raise ValueError(sentence)
        return self

    @property
    def tokens(self) -> TokenSource | None:
        return self.oauth or self.managed_identity

    def target(self, place: Place) -> Target:
        """The URL as it is now. Raises `Unavailable` when there is none that can be used."""
        text = place.fill(read_secret(self.url, "url"))
        try:
            return read_url(text, **_allowances({"insecure": self.insecure, "proxy": self.proxy}))
        except ValueError as error:
            raise Unavailable(f"url {error}") from None

    def describe(self) -> str:
        what = f"in {self.mode} mode" if self.format is None else f"as {self.words}"
        how = [f"asking for consent first ({self.handshake})"] * (self.handshake != "off")
        how += ["signed"] * bool(self.secret)
        how += [f"authorized by {name}" for name in _AUTHORIZATIONS if getattr(self, name)]
        how += ["showing a client certificate"] * bool(self.tls and self.tls.certificate)
        how += ["over TLS that checks nothing"] * bool(self.tls and self.tls.insecure)
        how += [f"through the proxy {self.proxy.url}"] * bool(self.proxy) if self.proxy else []
        return ", ".join([f"posts CloudEvents {what} to {self._whereabouts()}", *how])

    def _whereabouts(self) -> str:
        try:
            filled = re.sub(r"\{[^{}]*\}", "_", read_secret(self.url, "url"))
            target = read_url(filled, insecure=True)
        except (Unavailable, ValueError):
            return "the URL in a file"
        return f"{target.origin}/…" if target.rest.strip("/") else target.origin


_AUTHORIZATIONS = ("bearer", "basic", "oauth", "managed_identity")
_SIGNED = (
    "what is signed with secret is mode: structured,"
    " for a signature covers neither headers nor several CloudEvents"
)
_FORMATTED = "with format the body is all there is; leave mode out, or format"
_ORIGIN_NEEDED = "handshake needs origin, the DNS name under which the receiver knows this sender"
_NO_HANDSHAKE = "origin and rate are for a handshake; set handshake: optional or required"


def _allowances(data: Mapping[str, Any]) -> dict[str, bool]:
    proxy = data.get("proxy")
    return {"insecure": bool(data.get("insecure")), "alone": proxy is None or proxy.near}
