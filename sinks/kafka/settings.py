"""The keys of Kafka: the connection, which both directions share, and the sink's topics."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from aiokafka.codec import has_lz4, has_snappy, has_zstd
from pydantic import Field, field_validator, model_validator

from bridge.plugins import (
    CloudEvent,
    ManagedIdentity,
    OAuth,
    Place,
    Secret,
    Settings,
    SinkSettings,
    TLSOption,
    TokenSource,
    is_loopback,
)

EVENT_TYPES = ("freeze", "reboot", "redeploy", "preempt", "terminate")
OTHER = "other"
"""`{event_type}` of everything else: new types of Azure, and CloudEvents about the bridge."""
_LONGEST = 249
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
DEFAULT_PORT = 9092
ANYWHERE = Place({name: f"some-{name}" for name in Place.NAMES})
"""To compare topics before the VM's names are known."""
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>\d{1,5}))?")
_EXTENSION = re.compile(r"[A-Za-z]{1,64}")
_CODECS = {"lz4": has_lz4, "snappy": has_snappy, "zstd": has_zstd}


def validate_topic(template: str) -> str:
    """Return *template*. Raises ValueError when it cannot become a legal topic."""
    Place.validate(template, "event_type")
    fixed = _PLACEHOLDER.sub("", template)
    if not template or (fixed and not _LEGAL.fullmatch(fixed)):
        raise ValueError(f"{template!r} is not a topic; use A-Z a-z 0-9 . _ -")
    if template in {".", ".."} or len(fixed) > _LONGEST:
        raise ValueError(f"a topic must have 1 to {_LONGEST} characters and be neither . nor ..")
    return template


@dataclass(frozen=True, slots=True)
class Topics:
    """A filled-in template: one topic for each event type, often the same for all."""

    by_type: Mapping[str, str]
    only: str | None = None
    """The topic, if it is the same for all types."""

    @classmethod
    def fill(cls, template: str, place: Place) -> Self:
        """Raises `Unavailable` while a placeholder has no value yet."""
        by_type = {kind: fill_topic(template, place, kind) for kind in (*EVENT_TYPES, OTHER)}
        return cls(by_type, by_type[OTHER] if len(set(by_type.values())) == 1 else None)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(self.by_type.values()))

    def of(self, cloudevent: CloudEvent) -> str:
        return self.only or self.by_type[_event_type(cloudevent.data)]


def _event_type(data: Mapping[str, object]) -> str:
    kind = str(data.get("eventType")).lower()
    return kind if kind in EVENT_TYPES else OTHER


def fill_topic(template: str, place: Place, kind: str = OTHER) -> str:
    """Raises `Unavailable` while a placeholder has no value yet."""
    topic = _ILLEGAL.sub("_", place.fill(template, event_type=kind))[:_LONGEST]
    return topic if topic.strip(".") else topic.replace(".", "_")


Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class Sasl(Settings):
    """How the bridge authenticates, unless its certificate does that."""

    mechanism: Mechanism
    username: str | None = Field(None, min_length=1, description="PLAIN and SCRAM")
    password: Secret | None = Field(None, description="PLAIN and SCRAM")
    oauth: OAuth | None = Field(None, description="OAUTHBEARER, with client credentials")
    managed_identity: ManagedIdentity | None = Field(
        None, description="OAUTHBEARER, with the VM's own Azure identity"
    )
    extensions: Mapping[str, str] = Field({}, description="SASL extensions of OAUTHBEARER")

    @property
    def tokens(self) -> TokenSource | None:
        return self.oauth or self.managed_identity

    @field_validator("extensions")
    @classmethod
    def _clean(cls, extensions: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in extensions.items():
            if not _EXTENSION.fullmatch(name) or name == "auth" or not value.isprintable():
                raise ValueError(f"{name!r} is not an extension; use letters only")
        return extensions

    @model_validator(mode="after")
    def _complete(self) -> Self:
        by_password = bool(self.username) and self.password is not None
        some_password = self.username is not None or self.password is not None
        sources = [self.oauth, self.managed_identity].count(None)
        if self.mechanism != "OAUTHBEARER":
            if not by_password or sources != 2 or self.extensions:
                raise ValueError(f"{self.mechanism} takes username and password, and nothing else")
        elif some_password or sources != 1:
            raise ValueError("OAUTHBEARER takes either oauth or managed_identity, and no password")
        return self


class Connection(Settings):
    """How to reach a cluster. Sinks and approval sources have the same keys for it."""

    bootstrap_servers: tuple[str, ...] = Field(
        description="HOST:PORT of at least one broker; the client finds the others",
        json_schema_extra={"minItems": 1},
    )
    client_id: str | None = Field(
        None,
        min_length=1,
        description="may contain {vm_id} and so on; default: chosen by the bridge",
    )
    tls: TLSOption = None
    sasl: Sasl | None = None
    insecure: bool = Field(
        default=False, description="allow a password or token in clear text beyond loopback"
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _addresses(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        if not servers:
            raise ValueError("is empty; name at least one broker, as in kafka-1.example:9092")
        return tuple(_address(server) for server in servers)

    @field_validator("client_id")
    @classmethod
    def _placeholders(cls, client_id: str | None) -> str | None:
        return client_id and Place.validate(client_id)

    @model_validator(mode="after")
    def _safe(self) -> Self:
        shown = self.sasl is not None and self.sasl.mechanism in {"PLAIN", "OAUTHBEARER"}
        far = [host for host, _ in self.servers if not is_loopback(host)]
        if shown and far and not self.tls and not self.insecure:
            what = "password" if self.sasl and self.sasl.mechanism == "PLAIN" else "token"
            raise ValueError(
                f"the {what} would go to {far[0]} in clear text; set tls, or insecure: true"
            )
        return self

    @property
    def servers(self) -> list[tuple[str, int]]:
        split = (server.rpartition(":") for server in self.bootstrap_servers)
        return [(host.strip("[]"), int(port)) for host, _, port in split]

    def name_client(self, place: Place, role: str) -> str:
        """`seb-<vm id>-<role>-<name>`: quotas, logs and operators can tell clients apart."""
        if self.client_id is not None:
            return place.fill(self.client_id)
        vm = place.names.get("vm_id") or place.names.get("vm_name")
        parts = ("seb", vm, role, place.sink)
        return "-".join(re.sub(r"[^A-Za-z0-9._-]", "_", part) for part in parts if part)

    def describe_security(self, verb: str = "with") -> str:
        tls = self.tls
        how = "without TLS" if tls is None else "over TLS"
        if tls is not None and tls.insecure:
            how = "over TLS without verification"
        if tls is not None and tls.certificate:
            how += " with a client certificate"
        return f"{how}, {verb} SASL {self.sasl.mechanism}" if self.sasl else how


class KafkaSettings(Connection, SinkSettings):
    """Which topic, and how CloudEvents become records."""

    type: Literal["kafka"]
    topic: str = Field(
        "azure.scheduled-events", description="{event_type}, {vm_name}, … are filled in"
    )
    state_topic: str | None = Field(
        None, description="a compacted topic with the present state of each pending event"
    )
    mode: Literal["binary", "structured"] = Field(
        "binary", description="binary: attributes in headers; structured: all in the value"
    )
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = "none"
    keep_connected: bool = Field(
        default=True, description="false: close connections that are idle for 10s"
    )

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        return validate_topic(topic)

    @field_validator("state_topic")
    @classmethod
    def _legal_state_topic(cls, topic: str | None) -> str | None:
        if topic is not None and "{event_type}" in topic:
            raise ValueError("{event_type} is not allowed: the type of an event may change")
        return topic and validate_topic(topic)

    @model_validator(mode="after")
    def _whole_state(self) -> Self:
        if self.state_topic is None:
            return self
        if self.format is not None:
            raise ValueError("state_topic contains CloudEvents; remove format, or use another sink")
        if self.only.types is not None or self.only.event_types is not None:
            raise ValueError(
                "state_topic needs all transitions and snapshots; remove only, or use another sink"
            )
        if fill_topic(self.state_topic, ANYWHERE) in Topics.fill(self.topic, ANYWHERE).names:
            raise ValueError("topic and state_topic must not be the same")
        return self

    @property
    def keeps_state(self) -> bool:
        return self.state_topic is not None

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if self.format is not None and "mode" in self.model_fields_set:
            raise ValueError("mode and format exclude each other; remove one of them")
        return self

    @field_validator("compression")
    @classmethod
    def _installed(cls, name: str) -> str:
        if name in _CODECS and not _CODECS[name]():
            raise ValueError(
                f"{name} needs the package cramjam; pip install cramjam, or use gzip or none"
            )
        return name

    @property
    def connects(self) -> bool:
        return self.keep_connected

    def describe(self) -> str:
        servers = ", ".join(self.bootstrap_servers)
        shape = f"as {self.words}" if self.format else f"in {self.mode} mode"
        kept = f", and what is pending to {self.state_topic}," if self.state_topic else ""
        return (
            f"writes CloudEvents {shape} to Kafka topic {self.topic}{kept} "
            f"at {servers} {self.describe_security()}"
        )


def _address(server: Any) -> str:
    match = _SERVER.fullmatch(server.strip())
    port = int(match["port"] or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError(
            f"{server!r} is not a broker's address; write HOST:PORT, as in kafka-1.example:9092"
        )
    return f"{match['host']}:{port}"
