"""The keys of the sink `syslog`: the receiver, the transport, and the header."""

import re
from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from bridge.plugins import TLS, Place, SinkSettings, Size, TLSOption

PORTS = {"udp": 514, "tcp": 601, "tls": 6514}
SIZES = {"udp": 2048, "tcp": 8192, "tls": 8192}
"""What receivers should accept at least, by RFC 5424 and RFC 5425."""
SMALLEST, LARGEST, LARGEST_DATAGRAM = 480, 1024 * 1024, 65507
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
_PRINTABLE = r"^[!-~]+$"

FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron"),
    *("authpriv", "ftp", "ntp", "audit", "alert", "clock"),
    *(f"local{number}" for number in range(8)),
)
"""In the order of their numbers, from 0."""
Facility = Literal[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """Where the receiver is."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        shown = "a URL with a user name" if "@" in text else repr(text)
        wrong = (
            f"{shown} is not a receiver's address; write udp://HOST:PORT, tcp://HOST:PORT "
            "or tls://HOST:PORT"
        )
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError(wrong) from None
        more = parts.path or parts.query or parts.fragment or parts.username or parts.password
        if parts.scheme not in PORTS or more or port == 0 or not _HOST.fullmatch(host):
            raise ValueError(wrong)
        return cls(parts.scheme, host, port or PORTS[parts.scheme])


class SyslogSettings(SinkSettings):
    """Which receiver, and what the messages look like."""

    type: Literal["syslog"]
    address: str = Field(description="udp://HOST:514, tcp://HOST:601 or tls://HOST:6514")
    tls: TLSOption = None
    framing: Literal["octet-counting", "newline"] = Field(
        "octet-counting", description="how messages are separated over tcp and tls"
    )
    keep_connected: bool = Field(
        default=True,
        description="false: one connection per batch; delivered once the receiver closes it",
    )
    max_size: Size | None = Field(
        None, description="the largest message; default: 2KiB over udp, 8KiB over tcp and tls"
    )
    facility: Facility = "daemon"
    hostname: str | None = Field(
        None, min_length=1, description="may contain {vm_name} and so on; default: the VM's name"
    )
    app_name: str = Field("scheduled-events-bridge", max_length=48, pattern=_PRINTABLE)
    enterprise_id: int | None = Field(
        None, ge=1, lt=2**32, description="your private enterprise number: adds structured data"
    )

    @field_validator("address")
    @classmethod
    def _legal(cls, address: str) -> str:
        return str(Address.parse(address))

    @field_validator("hostname")
    @classmethod
    def _placeholders(cls, hostname: str | None) -> str | None:
        return hostname and Place.validate(hostname)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        scheme = self.to.scheme
        if scheme != "tls" and self.tls is not None:
            raise ValueError(f"tls has no effect with {scheme}://; write address: tls://HOST:PORT")
        if scheme == "tls" and self.tls is None and "tls" in self.model_fields_set:
            raise ValueError("tls: false contradicts tls://; write address: tcp://HOST:PORT")
        for key in ("framing", "keep_connected"):
            if scheme == "udp" and key in self.model_fields_set:
                raise ValueError(f"{key} has no effect with udp://, which has no connections")
        most = LARGEST_DATAGRAM if scheme == "udp" else LARGEST
        if not SMALLEST <= self.largest <= most:
            raise ValueError(f"max_size must be from {SMALLEST}B to {most}B with {scheme}://")
        return self

    @property
    def to(self) -> Address:
        return Address.parse(self.address)

    @property
    def largest(self) -> int:
        return SIZES[self.to.scheme] if self.max_size is None else self.max_size

    @property
    def security(self) -> TLS | None:
        """`tls://` alone means: verified by the system's authorities."""
        return self.tls or TLS() if self.to.scheme == "tls" else None

    @property
    def connects(self) -> bool:
        return self.to.scheme != "udp" and self.keep_connected

    def describe(self) -> str:
        text = f"sends CloudEvents as {self.words} in syslog messages (RFC 5424) to {self.address}"
        tls = self.security
        if self.to.scheme == "udp":
            return f"{text}, which does not confirm that they arrive"
        if tls is None:
            return f"{text} without TLS"
        if tls.certificate:
            text += " with a client certificate"
        return f"{text} over TLS without verification" if tls.insecure else text
