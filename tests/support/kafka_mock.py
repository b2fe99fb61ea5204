"""librdkafka's in-memory cluster: a stand-in for Apache Kafka where there is no Java.

It has no users, no TLS and no access lists, and creates every topic on request.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import confluent_kafka
from support.lacking import lacking

PRODUCER = 0
LACKS = "the in-memory cluster has no {}: Apache Kafka is needed (scripts/kafka-libs)"


def library() -> ctypes.CDLL:
    package = Path(confluent_kafka.__file__).parent
    found = [*package.parent.glob("confluent_kafka.libs/librdkafka-*.so*")]
    found += package.glob(".dylibs/librdkafka*.dylib")
    if not found:
        lacking("this build of confluent-kafka comes without librdkafka's in-memory cluster")
    loaded = ctypes.CDLL(str(found[0]))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(loaded, name).restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return loaded


class MockCluster:
    """Brokers 1 to `size` in threads of this process; `close` it."""

    def __init__(self, size: int) -> None:
        self._library = library()
        self._client = ctypes.c_void_p(self._library.rd_kafka_new(PRODUCER, None, None, 0))
        made = self._library.rd_kafka_mock_cluster_new(self._client, size)
        self._cluster = ctypes.c_void_p(made)
        said: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.bootstrap = said.decode()
        self._alive = set(range(1, size + 1))
        self._replicated: dict[str, int] = {}

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

    def kill(self, node: int) -> None:
        self._library.rd_kafka_mock_broker_set_down(self._cluster, node)
        self._alive.discard(node)
        if self._alive:
            self._elect(min(self._alive))

    def restart(self, node: int) -> None:
        self._library.rd_kafka_mock_broker_set_up(self._cluster, node)
        self._alive.add(node)

    def _elect(self, node: int) -> None:
        """By itself the cluster leaves the partitions of a node that is down without a leader."""
        lead = self._library.rd_kafka_mock_partition_set_leader
        for topic, partitions in self._replicated.items():
            for partition in range(partitions):
                lead(self._cluster, topic.encode(), partition, node)

    def create_topic(
        self, name: str, partitions: int, replication: int, config: Mapping[str, str]
    ) -> None:
        if config:
            lacking(LACKS.format("settings of topics"))
        create = self._library.rd_kafka_mock_topic_create
        code = create(self._cluster, name.encode(), partitions, replication)
        assert code == 0, f"the topic {name} could not be made: error {code}"
        if replication > 1:
            self._replicated[name] = partitions

    def delete_topic(self, name: str) -> None:
        lacking(LACKS.format("way to delete a topic"))

    def add_user(self, name: str, password: str) -> None:
        lacking(LACKS.format("users"))

    def add_rule(self, topic: str, user: str, operation: str, permission: str) -> None:
        lacking(LACKS.format("access lists"))
