"""The server.properties of one Kafka node of the tests, as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.certificates import CLIENT, Certificates, Identity

Settings = dict[str, str | int | Path]

ADMIN = "admin"  # may do everything, like every anonymous client
PASSWORDS = {ADMIN: "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

PROTOCOLS = {
    "CONTROLLER": "PLAINTEXT",
    "PLAINTEXT": "PLAINTEXT",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SSL": "SSL",
    "SASL_SSL": "SASL_SSL",
    "EXPIRED": "SSL",  # shows an expired certificate
    "WRONG_HOST": "SSL",  # shows a certificate for another host
}
SECURE = tuple(name for name in PROTOCOLS if name != "CONTROLLER")
PLAIN = ("PLAINTEXT",)

FIXED: Settings = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN}",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
    # Small: this is one of several programs on a small machine.
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    "log.index.size.max.bytes": 64 * 1024,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    # Quick to start, and to notice that a node was killed: until its session is over, a killed node
    # is refused when it comes back.
    "group.initial.rebalance.delay.ms": 0,
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 3000,
    "controller.quorum.fetch.timeout.ms": 1000,
    "controller.quorum.election.timeout.ms": 500,
}


@dataclass(frozen=True)
class NodeConfig:
    """One node among its peers: `ports` by listener, `voters` the controllers' ports by node."""

    node: int
    ports: Mapping[str, int]
    voters: Mapping[int, int]
    data: Path
    certificates: Certificates | None = None
    host: str = "127.0.0.1"

    def text(self) -> str:
        lines = FIXED | self._place() | self._replication()
        if self.certificates is not None:
            lines |= _sasl() | _tls(self.certificates)
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def _place(self) -> Settings:
        addresses = (f"{name}://{self.host}:{port}" for name, port in self.ports.items())
        protocols = (f"{name}:{PROTOCOLS[name]}" for name in self.ports)
        voters = (f"{node}@{self.host}:{port}" for node, port in self.voters.items())
        return {
            "node.id": self.node,
            "listeners": ",".join(addresses),
            "listener.security.protocol.map": ",".join(protocols),
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": self.data,
        }

    def _replication(self) -> Settings:
        copies = min(3, len(self.voters))
        return {
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": min(2, copies),
        }


def _sasl() -> Settings:
    modules = "org.apache.kafka.common.security"
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    scram = f"{modules}.scram.ScramLoginModule required;"
    bearer = f"{modules}.oauthbearer.OAuthBearerLoginModule required"
    logins = {
        "plain": f"{modules}.plain.PlainLoginModule required {users};",
        "scram-sha-256": scram,
        "scram-sha-512": scram,
        "oauthbearer": f'{bearer} unsecuredLoginStringClaim_sub="{ADMIN}";',
    }
    enabled: Settings = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    return enabled | {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": login
        for listener in ("sasl_plaintext", "sasl_ssl")
        for mechanism, login in logins.items()
    }


def _tls(files: Certificates) -> Settings:
    trusted: Settings = {
        "ssl.client.auth": "requested",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.authority,
        # The user is the certificate's common name.
        "ssl.principal.mapping.rules": f"RULE:^.*CN=({CLIENT}).*$/$1/,DEFAULT",
    }
    return (
        trusted
        | _keystore("", files.server)
        | _keystore("listener.name.expired.", files.expired_server)
        | _keystore("listener.name.wrong_host.", files.wrong_host_server)
    )


def _keystore(prefix: str, identity: Identity) -> Settings:
    return {f"{prefix}ssl.keystore.type": "PEM", f"{prefix}ssl.keystore.location": identity.both}
