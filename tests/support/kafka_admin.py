"""Topics, users and access lists of a broker, through a client that shares no code with the bridge."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from support.kafka_node import quiet

TIMEOUT = 20.0
SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


class Admin(Protocol):
    """What tests may change on a broker; each call waits until it is done."""

    def create_topic(
        self, name: str, partitions: int, replication: int, config: Mapping[str, str]
    ) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def add_user(self, name: str, password: str) -> None: ...

    def add_rule(self, topic: str, user: str, operation: str, permission: str) -> None: ...


class KafkaAdmin:
    """On a real broker."""

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient(quiet({"bootstrap.servers": bootstrap}))

    def create_topic(
        self, name: str, partitions: int, replication: int, config: Mapping[str, str]
    ) -> None:
        topic = NewTopic(name, partitions, replication, config=dict(config))
        _wait(self._client.create_topics([topic], operation_timeout=TIMEOUT))

    def delete_topic(self, name: str) -> None:
        _wait(self._client.delete_topics([name], operation_timeout=TIMEOUT))

    def add_user(self, name: str, password: str) -> None:
        changes = [
            UserScramCredentialUpsertion(name, ScramCredentialInfo(each, 4096), password.encode())
            for each in SCRAM
        ]
        for change in changes:
            _wait(self._client.alter_user_scram_credentials([change]))

    def add_rule(self, topic: str, user: str, operation: str, permission: str) -> None:
        rule = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType[permission],
        )
        _wait(self._client.create_acls([rule]))


def _wait(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(TIMEOUT)
