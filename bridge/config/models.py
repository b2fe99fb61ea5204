"""The configuration as typed values: each key with its default and its meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from bridge.common.fields import Duration, Secret, Settings, Size
from bridge.config.approvals import ApprovalsSettings
from bridge.config.values import (
    ApiVersion,
    Directory,
    EndpointUrl,
    Group,
    Line,
    Listen,
    Network,
    PublicUrls,
    TracesUrl,
    UriReference,
    check_traces,
)
from bridge.plugins import SinkSettings

DEFAULT_LISTEN = Listen("127.0.0.1", 17245)
_BEARER = re.compile(r"[!-~]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ !-~]{0,8190}[!-~])?")

Scope = Literal["read", "approve", "operate"]
"""operate: dead letters, replays, drills and resuming a sink."""


class SourceSettings(Settings):
    """Where scheduled events come from, and which of them to publish."""

    endpoint: EndpointUrl = Field("auto", description="auto, or the URL of the metadata service")
    api_version: ApiVersion = Field("2020-07-01", description="any date from 2017-03-01 on")
    poll_interval: Duration = Field(1.0, description="at least 200ms")
    scope: Literal["own", "all"] = Field(
        "own", description="own: scheduled events that name this VM; all: every event it can see"
    )
    vm_name: Line | None = Field(None, description="default: from instance metadata")
    degraded_after: Duration = Field(300.0, description="plus up to a minute of jitter")
    snapshot_interval: Duration = Field(86400.0, description="how often to publish what is pending")
    tags: tuple[str, ...] = Field((), description="VM tags to copy into observer")
    labels: Mapping[str, str] = Field({}, description="fixed labels to copy into observer")

    @field_validator("poll_interval")
    @classmethod
    def _not_too_often(cls, seconds: float) -> float:
        if seconds < 0.2:
            raise ValueError("must be at least 200ms: Azure allows a VM 5 requests per second")
        return seconds

    @field_validator("snapshot_interval", "degraded_after")
    @classmethod
    def _some_time(cls, seconds: float) -> float:
        if seconds < 1:
            raise ValueError("must be at least 1s")
        return seconds


class EnvelopeSettings(Settings):
    """What every CloudEvent contains."""

    source: UriReference | None = Field(None, description="default: from instance metadata")


class JournalSettings(Settings):
    """How long the journal keeps data, and how much."""

    keep: Duration = Field(2592000.0, description="how long settled CloudEvents are kept")
    max_size: Size = Field(268435456, description="largest size of the file; at least 1MiB")
    newer: Literal["refuse", "set-aside"] = Field(
        "refuse", description="if a newer version wrote the file: do not start, or set it aside"
    )

    @field_validator("max_size")
    @classmethod
    def _not_too_small(cls, size: int) -> int:
        if size < 1024**2:
            raise ValueError("must be at least 1MiB")
        return size


class TokenSettings(Settings):
    """Who may call the API, and for what."""

    name: Line = Field(description="who uses it; default: token-1, token-2, … by position")
    token: Secret
    scopes: tuple[Scope, ...] = Field(("read", "approve"), json_schema_extra={"minItems": 1})

    @field_validator("token", mode="before")
    @classmethod
    def _fits_a_header(cls, token: object) -> object:
        if isinstance(token, str) and token and not _BEARER.fullmatch(token):
            raise ValueError("must be ASCII without spaces, to fit in an HTTP header")
        return token

    @field_validator("scopes")
    @classmethod
    def _some_scope(cls, scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
        if not scopes:
            raise ValueError("is empty: the token would be useless; add read, approve or operate")
        return scopes


class ServerTLS(Settings):
    """PEM files: the server's certificate chain and key, and the CA of client certificates."""

    certificate: Path
    key: Path
    client_ca: Path | None = Field(
        None, description="the CA that signs client certificates; null: ask for none"
    )
    client_certificates: Literal["required", "optional"] = Field(
        "required", description="optional: clients without one need a token, or sign their votes"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.client_ca is None and "client_certificates" in self.model_fields_set:
            raise ValueError("client_certificates has no effect without client_ca")
        return self

    def stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Values that change when one of the files changes."""
        return tuple(_stamp(path) for path in (self.certificate, self.key, self.client_ca))


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return status and (status.st_mtime_ns, status.st_size, status.st_ino)


def _named(tokens: object) -> object:
    """Give each bare secret a name, by its position in the list."""
    if not isinstance(tokens, list | tuple):
        return tokens
    return [_with_name(item, number) for number, item in enumerate(tokens, 1)]


def _with_name(item: object, number: int) -> object:
    if isinstance(item, str) or (isinstance(item, dict) and set(item) == {"file"}):
        return {"name": f"token-{number}", "token": item}
    return {"name": f"token-{number}", **item} if isinstance(item, dict) else item


class HttpSettings(Settings):
    """Console, API and probes over HTTP."""

    listen: Listen | None = Field(DEFAULT_LISTEN, description="the HTTP API; null: off")
    probes_listen: Listen | None = Field(
        None, description="/livez /readyz /metrics only, without a token; any address"
    )
    tokens: Annotated[tuple[TokenSettings, ...], BeforeValidator(_named)] = Field(
        (), description="secrets, or {name, token, scopes}"
    )
    max_connections: int = Field(
        256, ge=1, le=65536, description="for each address; the bridge closes any more"
    )
    webhook_origins: tuple[Line, ...] = Field(
        (), description="origins that may send approvals as CloudEvents webhooks"
    )
    public_url: PublicUrls = Field(
        (), description="where a proxy serves the bridge: one URL or several"
    )
    trusted_proxies: tuple[Network, ...] = Field(
        (), description="proxies whose X-Forwarded-For names the caller in logs and for limits"
    )
    tls: ServerTLS | None = None
    insecure: bool = Field(default=False, description="allow plain HTTP beyond loopback")

    @property
    def asks_for_certificates(self) -> bool:
        return self.tls is not None and self.tls.client_ca is not None

    @property
    def listen_is_default(self) -> bool:
        """Whether the address is only a default: if it is taken, the bridge warns and continues."""
        return "listen" not in self.model_fields_set

    @model_validator(mode="after")
    def _safe(self) -> Self:
        names = [token.name for token in self.tokens]
        if len(set(names)) < len(names):
            raise ValueError("two tokens have the same name")
        if self.listen is None:
            return self
        if self.listen == self.probes_listen and self.listen.port:
            raise ValueError(f"listen and probes_listen are both {self.listen}; use two ports")
        if not self.listen.is_loopback and not (self.tokens or self.asks_for_certificates):
            raise ValueError(
                f"listen: {self.listen} is not loopback, so it needs tokens, or tls with client_ca"
            )
        if not self.listen.is_loopback and not (self.tls or self.insecure):
            raise ValueError(
                f"listen: {self.listen} is not loopback, so it needs tls, or insecure: true"
            )
        return self

    @model_validator(mode="after")
    def _behind_a_proxy(self) -> Self:
        keys = {"public_url": self.public_url, "trusted_proxies": self.trusted_proxies}
        for key, value in keys.items():
            if value and self.listen is None:
                raise ValueError(f"{key} has no effect without listen")
        if self.public_url and not self.tokens:
            raise ValueError(
                "public_url needs tokens: behind a proxy, every caller comes from its address"
            )
        for url in self.public_url:
            if not url.is_secure and not self.insecure:
                raise ValueError(
                    f"public_url: {url} shows tokens to the network; use https, or insecure: true"
                )
        return self


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file that a configuration was read from; another comment in it changes nothing."""

    path: Path
    sha256: str = field(compare=False)


class TelemetrySettings(Settings):
    """Where to send traces."""

    otlp: TracesUrl | None = Field(
        None, description="an OTLP receiver over HTTP, such as http://127.0.0.1:4318; null: none"
    )
    headers: Mapping[str, Secret] = Field({}, description="headers for each request, such as a key")
    insecure: bool = Field(default=False, description="allow plain HTTP beyond loopback")

    @field_validator("headers", mode="before")
    @classmethod
    def _fit(cls, headers: object) -> object:
        for name, value in headers.items() if isinstance(headers, dict) else ():
            if not _HEADER.fullmatch(str(name)) or (
                isinstance(value, str) and not _HEADER_VALUE.fullmatch(value)
            ):
                raise ValueError(f"{name!r} and its value must be printable ASCII, as in HTTP")
        return headers

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.otlp is None and self.headers:
            raise ValueError("headers have no effect without otlp")
        if self.otlp is not None:
            check_traces(self.otlp, insecure=self.insecure)
        return self


class Config(Settings):
    """The whole configuration; `file` is its path, or None for built-in defaults."""

    source: SourceSettings = SourceSettings()
    cloudevents: EnvelopeSettings = EnvelopeSettings()
    state_dir: Directory | None = Field(
        None, description="default: the system's state directory, else the user's"
    )
    journal: JournalSettings = JournalSettings()
    stop_grace: Duration = Field(10.0, description="how long sinks may drain on shutdown")
    control_group: Group | None = Field(
        None, description="a group that may also use the control socket"
    )
    sinks: Mapping[str, SinkSettings] = Field({}, description="default: one stdout sink")
    approvals: ApprovalsSettings = ApprovalsSettings()
    http: HttpSettings = HttpSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    _origin: ConfigFile | None = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        self._origin = context.get("file") if context else None

    @property
    def file(self) -> Path | None:
        return self._origin.path if self._origin else None

    @property
    def file_sha256(self) -> str | None:
        """The SHA-256 of the file's text when it was read; None for built-in defaults."""
        return self._origin.sha256 if self._origin else None
