"""`seb check --connect`: reached, authenticated, topic there, topic writable; or which is not.

Nothing is published: the broker itself says what we may do with the topic.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from bridge.plugins import Place, Unavailable
from sinks._limit import batch_limit
from sinks.kafka.connection import Connector, hang_up
from sinks.kafka.delivery import find_door
from sinks.kafka.errors import verdict, why_not_connected
from sinks.kafka.settings import KafkaSettings, Topics

_ASK_AGAIN, _PAUSE = 5, 0.2
_PERHAPS_NEW = {
    errors.UnknownTopicOrPartitionError.errno,
    errors.LeaderNotAvailableError.errno,
}
_WRITE = 1 << 4
_NOT_SAID = -(2**31)
_TEXT = String("utf-8")
_BROKER = (("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT))
_PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", Array(Int32)),
    ("isr", Array(Int32)),
    ("offline_replicas", Array(Int32)),
)
_TOPIC = (
    ("error_code", Int16),
    ("topic", _TEXT),
    ("is_internal", Boolean),
    ("partitions", Array(*_PARTITION)),
    ("authorized_operations", Int32),
)


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(*_BROKER)),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        ("topics", Array(*_TOPIC)),
        ("authorized_operations", Int32),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", Array(_TEXT)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class AskTopics(Request[MetadataRequest_v5 | _Question]):  # type: ignore[misc]
    """Makes no topics. A broker before 2.3 tells the rest, but not what we may do."""

    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        if request_struct_class is _Question:
            return _Question(self._topics, False, False, True)  # noqa: FBT003  as the wire has them
        return request_struct_class(self._topics, False)  # noqa: FBT003


def may_write(operations: list[int]) -> bool | None:
    """What the last field of a topic's answer says, if it has one; None when it does not say."""
    if not operations or operations[0] == _NOT_SAID:
        return None
    return bool(operations[0] & _WRITE)


@dataclass(frozen=True, slots=True)
class _Topic:
    name: str
    leaders: frozenset[int]
    writable: bool | None


async def check_sink(settings: KafkaSettings, place: Place) -> str:
    """One sentence of what was proved. Raises `Unavailable` naming the first that failed."""
    topics = Topics.fill(settings.topic, place).names
    how = settings.describe_security("authenticated by")
    return await _check_topics(find_door(settings, place), topics, how, batch_limit(settings))


async def _check_topics(connector: Connector, topics: list[str], who: str, limit: float) -> str:
    try:
        async with asyncio.timeout(limit):
            first = await connector.enter()
            entered = f"reached {first.host}:{first.port} {who}"
            try:
                answer = await _asked(connector, first, topics)
            finally:
                hang_up(first)
            try:
                found = [_found(*topic) for topic in answer.topics]
                await _reach_leaders(connector, answer, found)
            except Unavailable as error:
                raise Unavailable(f"{entered}, but {error}") from None
            return f"{entered}; {_proved(found)}; nothing was published"
    except TimeoutError:
        servers = ", ".join(f"{host}:{port}" for host, port in connector.servers)
        raise Unavailable(f"{servers}: no answer within {limit:g} s") from None


async def _asked(connector: Connector, connection: AIOKafkaConnection, topics: list[str]) -> Any:
    """A topic that was made a moment ago is not known to every broker at once."""
    try:
        answer = await connection.send(AskTopics(topics))
        for _ in range(_ASK_AGAIN):
            if not _PERHAPS_NEW & {code for code, *_ in answer.topics}:
                break
            await asyncio.sleep(_PAUSE)
            answer = await connection.send(AskTopics(topics))
    except Exception as error:  # noqa: BLE001  whatever a broker does to a request is its answer
        reason = why_not_connected(error, connector.patience)
        raise Unavailable(f"{connection.host}:{connection.port}: {reason}") from None
    return answer


def _found(code: int, name: str, _internal: object, partitions: Any, *operations: int) -> _Topic:
    kind = errors.for_code(code)
    if kind is errors.UnknownTopicOrPartitionError:
        raise Unavailable(
            f"topic {name} does not exist"
            " (a broker that creates topics would make it for the first CloudEvent)"
        )
    if kind is not errors.NoError:
        raise verdict(kind(), name)
    leaders = {leader: number for _, number, leader, *_ in partitions}
    if -1 in leaders:
        raise Unavailable(f"partition {leaders[-1]} of topic {name} has no leader")
    writable = may_write(list(operations))
    if writable is False:
        raise verdict(errors.TopicAuthorizationFailedError(), name)
    return _Topic(name, frozenset(leaders), writable)


async def _reach_leaders(connector: Connector, answer: Any, found: list[_Topic]) -> None:
    """At the addresses that the cluster gives for them: producers use no other."""
    addresses = {node: (host, port) for node, host, port, *_ in answer.brokers}
    for leader in sorted({leader for topic in found for leader in topic.leaders}):
        host, port = addresses[leader]
        try:
            hang_up(await connector.knock(host, port))
        except Exception as error:  # noqa: BLE001  as above
            reason = why_not_connected(error, connector.patience)
            raise Unavailable(f"it names broker {leader} at {host}:{port}: {reason}") from None


def _proved(found: list[_Topic]) -> str:
    names = ", ".join(topic.name for topic in found)
    if all(topic.writable for topic in found):
        return f"topic {names} exists and may be written"
    return f"topic {names} exists; whether it may be written, the broker does not say"
