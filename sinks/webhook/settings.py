"""The keys of the sink `webhook`: where to post, in which mode, with which credentials."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from bridge.plugins import (
    ManagedIdentity,
    OAuth,
    Place,
    Secret,
    SinkSettings,
    TLSOption,
    TokenSource,
    Unavailable,
    read_secret,
)
from sinks.webhook.options import MOST, Basic, Keys, ProxyOption, check_name, check_value
from sinks.webhook.urls import Target, read_url

_ROUNDS = 8
_ORIGIN = re.compile(r"[A-Za-z0-9{](?:[A-Za-z0-9._{}-]{0,251}[A-Za-z0-9}])?")


class WebhookSettings(SinkSettings):
    """What to post, where, and how."""

    type: Literal["webhook"]
    insecure: bool = Field(default=False, description="allow http:// to a host other than loopback")
    proxy: ProxyOption = None
    tls: TLSOption = None
    url: Secret = Field(description="https://HOST/PATH; may contain {vm_name} and so on")
    mode: Literal["structured", "binary", "batch"] = Field(
        "structured",
        description="structured: all in the body; binary: attributes in headers; batch: several",
    )
    batch_size: int = Field(50, ge=1, le=500, description="the most CloudEvents in one request")
    concurrency: int = Field(8, ge=1, le=64, description="the most requests at the same time")
    secret: Keys = ()
    headers: Mapping[str, Secret] = Field({}, description="headers for each request")
    bearer: Secret | None = Field(None, description="a token for Authorization")
    basic: Basic | None = None
    oauth: OAuth | None = Field(None, description="a token by client credentials")
    managed_identity: ManagedIdentity | None = Field(
        None, description="a token for the VM's own Azure identity"
    )
    handshake: Literal["off", "optional", "required"] = Field(
        "off", description="ask the receiver for consent first, as CloudEvents webhooks do"
    )
    origin: str | None = Field(
        None, description="for the handshake: the sender's DNS name; may contain {vm_name}"
    )

    @field_validator("url", mode="before")
    @classmethod
    def _known(cls, url: object, info: ValidationInfo) -> object:
        """A URL in a file is read when it is needed, and checked by the same rules."""
        if isinstance(url, str):
            read_url(_blank(Place.validate(url)), **_rules(info.data))
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
            (self.handshake == "off" and self.origin, _NO_HANDSHAKE),
        ]
        for is_so, sentence in wrong:
            if is_so:
                raise ValueError(sentence)
        return self

    @property
    def tokens(self) -> TokenSource | None:
        return self.oauth or self.managed_identity

    @property
    def largest_batch(self) -> int:
        """Small when each is a request, so that all can be answered within one timeout."""
        return super().largest_batch if self.mode == "batch" else self.concurrency * _ROUNDS

    def target(self, place: Place) -> Target:
        """The current URL. Raises `Unavailable` when it cannot be used."""
        text = read_secret(self.url, "url")
        try:
            read_url(_blank(text), **_rules(dict(self)))
            return read_url(place.fill(text), **_rules(dict(self)))
        except ValueError as error:
            raise Unavailable(f"url {error}") from None

    def describe(self) -> str:
        what = f"in {self.mode} mode" if self.format is None else f"as {self.words}"
        how = [f"asking for consent first ({self.handshake})"] * (self.handshake != "off")
        how += ["signed"] * bool(self.secret)
        how += [f"authorized by {name}" for name in _AUTHORIZATIONS if getattr(self, name)]
        how += ["showing a client certificate"] * bool(self.tls and self.tls.certificate)
        how += ["over TLS without verification"] * bool(self.tls and self.tls.insecure)
        how += [f"through the proxy {self.proxy.url}"] * bool(self.proxy) if self.proxy else []
        return ", ".join([f"posts CloudEvents {what} to {self._whereabouts()}", *how])

    def _whereabouts(self) -> str:
        try:
            target = read_url(_blank(read_secret(self.url, "url")), insecure=True)
        except (Unavailable, ValueError):
            return "the URL in a file"
        return f"{target.origin}/…" if target.rest.strip("/") else target.origin


_AUTHORIZATIONS = ("bearer", "basic", "oauth", "managed_identity")
_SIGNED = (
    "secret needs mode: structured,"
    " because a signature covers neither headers nor several CloudEvents"
)
_FORMATTED = "format replaces mode; remove one of them"
_ORIGIN_NEEDED = "handshake needs origin, the DNS name of this sender"
_NO_HANDSHAKE = "origin is for a handshake; set handshake: optional or required"


def _blank(url: str) -> str:
    """Placeholders are allowed after the host only: this character is not allowed in a host."""
    return re.sub(r"\{[^{}]*\}", "~", url)


def _rules(data: Mapping[str, Any]) -> dict[str, bool]:
    """What the other keys require of the URL."""
    proxy = data.get("proxy")
    return {
        "insecure": bool(data.get("insecure")),
        "alone": proxy is None or proxy.near,
        "tls": data.get("tls") is not None,
    }
