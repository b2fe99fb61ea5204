"""The keys of MQTT: the connection, which both directions share, and the sink."""

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from bridge.plugins import Duration, Place, Secret, Settings, SinkSettings, TLSOption, is_loopback
from sinks.mqtt.topics import may_meet, validate_topic

PORTS = {("tcp", False): 1883, ("tcp", True): 8883, ("websockets", False): 80}
_PORT_WSS = 443
_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[A-Za-z0-9._-]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_LONGEST = 65535
_NAMELESS = secrets.token_hex(4)
"""Tells bridges apart while their VMs have no names; constant within a process."""


def _version(value: object) -> object:
    """`5` and `5.0` are numbers in YAML."""
    return "5" if value in (5, "5.0") and not isinstance(value, bool) else value


Version = Annotated[
    Literal["5", "3.1.1"],
    BeforeValidator(_version),
    WithJsonSchema({"enum": ["5", "3.1.1", 5]}),
]


class Connection(Settings):
    """How to reach a server. Sinks and approval sources have the same keys for it.

    The client id is not one of them: two connections with the same id end each other.
    """

    host: str = Field(description="a host name or an IP address", min_length=1, max_length=255)
    port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="default: 1883, with tls 8883; websockets: 80, with tls 443",
    )
    version: Version = "5"
    transport: Literal["tcp", "websockets"] = "tcp"
    path: str | None = Field(None, description="path of the WebSocket; default: /mqtt")
    headers: Mapping[str, Secret] = Field({}, description="headers of the WebSocket's request")
    username: str | None = Field(None, min_length=1, max_length=_LONGEST)
    password: Secret | None = None
    tls: TLSOption = None
    alpn: tuple[str, ...] = Field((), description="ALPN protocols, as in [mqtt]")
    keep_alive: Duration = Field(
        15.0, ge=1, le=65535, description="a server that is silent for longer counts as gone"
    )
    insecure: bool = Field(
        default=False, description="allow a password in clear text beyond loopback"
    )

    @field_validator("host")
    @classmethod
    def _a_host(cls, host: str) -> str:
        if not _HOST.fullmatch(host.strip()):
            raise ValueError(f"{host!r} is not a host; write its name or address, without the port")
        return host.strip().strip("[]")

    @field_validator("path")
    @classmethod
    def _a_path(cls, path: str | None) -> str | None:
        if path is not None and not re.fullmatch(r"/[!-~]{0,2047}", path):
            raise ValueError(f"{path!r} is not a path that starts with /, such as /mqtt")
        return path

    @field_validator("headers")
    @classmethod
    def _header_names(cls, headers: Mapping[str, Secret]) -> Mapping[str, Secret]:
        for name in headers:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name!r} is not a header name")
        return headers

    @field_validator("alpn")
    @classmethod
    def _protocols(cls, alpn: tuple[str, ...]) -> tuple[str, ...]:
        for name in alpn:
            if not name.isascii() or not 0 < len(name) < 256:
                raise ValueError(f"{name!r} is not a protocol name, as in [mqtt]")
        return alpn

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.password is not None and self.username is None:
            raise ValueError("password needs username")
        if self.transport == "tcp" and (self.path is not None or self.headers):
            raise ValueError("path and headers are for transport: websockets")
        if self.alpn and not self.tls:
            raise ValueError("alpn needs tls")
        shown = "password" if self.password is not None else "headers" if self.headers else None
        if shown and not (self.tls or self.insecure or is_loopback(self.host)):
            raise ValueError(
                f"{shown} would go to {self.host} in clear text; set tls, or insecure: true"
            )
        return self

    @property
    def address(self) -> tuple[str, int]:
        default = PORTS.get((self.transport, self.tls is not None), _PORT_WSS)
        return self.host, self.port or default

    @property
    def server(self) -> str:
        """HOST:PORT, for sentences."""
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def describe_client(self, client_id: str | None) -> str | None:
        """A configured client id and its server; the bridge's own ids differ anyway."""
        return None if client_id is None else f"client id {client_id} at {self.server}"

    def describe_connection(self) -> str:
        """`at HOST:PORT by MQTT 5 over TLS, as user NAME`."""
        way = f"at {self.server} by MQTT {self.version}"
        if self.transport == "websockets":
            way += f" in WebSockets ({self.path or '/mqtt'})"
        return f"{way} {self._describe_security()}"

    def _describe_security(self) -> str:
        how = "without TLS" if self.tls is None else "over TLS"
        if self.tls is not None and self.tls.insecure:
            how = "over TLS without verification"
        if self.tls is not None and self.tls.certificate:
            how += " with a client certificate"
        return f"{how}, as user {self.username}" if self.username else how


def name_client(template: str | None, place: Place, role: str) -> str:
    """*template* filled in, else `seb-<vm id>-<role>-<name>`.

    A server ends a connection when another one uses its client id. So while nothing is
    known about the VM, the id contains a random part, never a constant.
    """
    if template is not None:
        return place.fill(template)
    vm = place.names.get("vm_id") or place.names.get("vm_name") or _NAMELESS
    parts = ("seb", vm, role, place.sink)
    return "-".join(re.sub(r"[^A-Za-z0-9._-]", "_", part) for part in parts if part)


def _client_id(template: str | None) -> str | None:
    if template is not None and not re.fullmatch(r"[ -~]{1,1024}", template):
        raise ValueError("a client id has 1 to 1024 printable ASCII characters")
    return template and Place.validate(template)


ClientId = Annotated[
    str | None,
    AfterValidator(_client_id),
    Field(description="may contain {vm_id} and so on; default: chosen by the bridge"),
]


class MqttSettings(Connection, SinkSettings):
    """Which topic, and how CloudEvents become messages."""

    type: Literal["mqtt"]
    topic: str = Field(
        "azure/scheduled-events/events/{subject}",
        description="{subject} is the EventId; may also contain {vm_name}, {location}, …",
    )
    mode: Literal["structured", "binary"] = Field(
        "structured",
        description="structured: all in the payload; binary: attributes as user properties",
    )
    attribute_prefix: Literal["", "ce-"] = Field(
        "",
        description="before each attribute's name in binary mode; ce-: as the Go SDK expects",
    )
    qos: Literal[0, 1] = Field(1, description="1: acknowledged by the server; 0: sent only")
    expiry: bool = Field(
        default=False, description="the server drops announcements an hour after notBefore"
    )
    retain_state: bool = Field(
        default=False,
        description="keep the state of each scheduled event retained on its topic until it ends",
    )
    birth_topic: str | None = Field(
        "azure/scheduled-events/bridges/{observer}",
        description="retained topic that says whether this bridge is online; null: none",
    )
    response_topic: str | None = Field(
        None, description="Response Topic of CloudEvents that can be approved"
    )
    client_id: ClientId = None

    @field_validator("qos", mode="before")
    @classmethod
    def _not_twice(cls, qos: Any) -> Any:
        if qos in (2, "2"):
            raise ValueError(
                "2 is refused: the library reports success for QoS 2 messages that the server "
                "rejected; use 1, and drop duplicates by id"
            )
        return qos

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        return validate_topic(topic, "subject")

    @field_validator("birth_topic", "response_topic")
    @classmethod
    def _legal_topics(cls, topic: str | None) -> str | None:
        return topic if topic is None else validate_topic(topic)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in ("expiry", "response_topic") if self.version != "5" else ():
            if getattr(self, key):
                raise ValueError(f"{key} needs version: 5; MQTT 3.1.1 has no properties")
        if self.mode == "binary" and self.version != "5":
            raise ValueError("mode: binary needs version: 5; MQTT 3.1.1 has no properties")
        if self.mode == "binary" and self.format is not None:
            raise ValueError("format needs mode: structured; binary sends the data as it is")
        if self.attribute_prefix and self.mode != "binary":
            raise ValueError("attribute_prefix needs mode: binary; structured has no properties")
        if self.retain_state and "{subject}" not in self.topic:
            raise ValueError("retain_state needs {subject} in topic: a topic retains one message")
        return self

    @model_validator(mode="after")
    def _apart(self) -> Self:
        for key in ("birth_topic", "response_topic"):
            topic = getattr(self, key)
            if topic is not None and may_meet(self.topic, topic):
                raise ValueError(f"topic {self.topic} and {key} {topic} must not be the same")
        return self

    @property
    def connects(self) -> bool:
        return True

    @property
    def exclusive(self) -> str | None:
        return self.describe_client(self.client_id)

    def describe(self) -> str:
        kept = "; retains what is pending" if self.retain_state else ""
        asked = f"; asks for replies on {self.response_topic}" if self.response_topic else ""
        shape = f"as {self.words}" if self.format else f"in {self.mode} mode"
        return (
            f"publishes CloudEvents {shape} to MQTT topic {self.topic} "
            f"with QoS {self.qos} {self.describe_connection()}{kept}{asked}"
        )
