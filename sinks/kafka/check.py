"""`seb check --connect`: reached, authenticated, topic there, topic writable; or which is not.

Whether we may write is asked with a produce request that holds no records. Kafka judges access
before content: it answers "not authorized", or else that there was nothing to write.
"""

import asyncio
from typing import Any

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest

from bridge.plugins import Unavailable
from sinks.kafka.connecting import Door, hang_up
from sinks.kafka.errors import InvalidRecordError, verdict, why_not_connected

_ASK_AGAIN, _PAUSE = 5, 0.2
_PERHAPS_NEW = {errors.UnknownTopicOrPartitionError, errors.LeaderNotAvailableError}
_NOTHING_TO_WRITE = {
    errors.NoError,
    InvalidRecordError,
    errors.CorruptRecordException,
    errors.InvalidRequestError,
}
_NOT_WRITABLE = {
    errors.TopicAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.UnknownTopicOrPartitionError,
}


async def check_topics(door: Door, topics: list[str], who: str, limit: float) -> str:
    """One sentence of what was proved. Raises `Unavailable` naming the first that failed."""
    try:
        async with asyncio.timeout(limit):
            first = await door.enter()
            try:
                entered = f"reached {first.host}:{first.port} {who}"
                metadata = await _metadata(door, first, topics)
                found = [_found(topic, entered) for topic in metadata.topics]
            finally:
                hang_up(first)
            return await _writable(door, entered, _addresses(metadata), found)
    except TimeoutError:
        servers = ", ".join(f"{host}:{port}" for host, port in door.servers)
        raise Unavailable(f"{servers}: no answer within {limit:g} s") from None


async def _asked(door: Door, connection: AIOKafkaConnection, request: Any) -> Any:
    try:
        return await connection.send(request)
    except Exception as error:  # noqa: BLE001  whatever a broker does to a request is its answer
        reason = why_not_connected(error, door.patience)
        raise Unavailable(f"{connection.host}:{connection.port}: {reason}") from None


async def _metadata(door: Door, connection: AIOKafkaConnection, topics: list[str]) -> Any:
    """A topic that was made a moment ago is not known to every broker at once."""
    request = MetadataRequest(topics, allow_auto_topic_creation=False)
    metadata = await _asked(door, connection, request)
    for _ in range(_ASK_AGAIN):
        codes = {code for code, *_ in metadata.topics}
        if not codes & {kind.errno for kind in _PERHAPS_NEW}:
            break
        await asyncio.sleep(_PAUSE)
        metadata = await _asked(door, connection, request)
    return metadata


def _addresses(metadata: Any) -> dict[int, tuple[str, int]]:
    return {node: (host, port) for node, host, port, *_ in metadata.brokers}


def _found(topic: Any, entered: str) -> tuple[str, dict[int, int]]:
    """The topic's name, and a partition for each broker that leads one."""
    code, name, _, partitions = topic
    kind = errors.for_code(code)
    if kind is errors.UnknownTopicOrPartitionError:
        raise Unavailable(
            f"{entered}, but topic {name} does not exist"
            " (a broker that creates topics would make it for the first CloudEvent)"
        )
    if kind is not errors.NoError:
        raise Unavailable(f"{entered}, but: {verdict(kind(), name)}")
    leaders = {leader: number for _, number, leader, *_ in partitions}
    if -1 in leaders:
        raise Unavailable(f"{entered}, but partition {leaders[-1]} of topic {name} has no leader")
    return name, leaders


async def _writable(
    door: Door,
    entered: str,
    addresses: dict[int, tuple[str, int]],
    found: list[tuple[str, dict[int, int]]],
) -> str:
    """Ask each leader at the address that the cluster gives for it: producers use no other."""
    doubts: list[str] = []
    for leader in sorted({leader for _, leaders in found for leader in leaders}):
        host, port = addresses[leader]
        try:
            connection = await door.knock(host, port)
        except Exception as error:  # noqa: BLE001  as above
            reason = why_not_connected(error, door.patience)
            raise Unavailable(
                f"{entered}, but it names broker {leader} at {host}:{port}: {reason}"
            ) from None
        try:
            for topic, leaders in found:
                if leader in leaders:
                    doubts += await _doubts(door, connection, topic, leaders[leader])
        except Unavailable as error:
            raise Unavailable(f"{entered}, but: {error}") from None
        finally:
            hang_up(connection)
    proved = f"not proved to be writable ({doubts[0]})" if doubts else "may be written"
    names = ", ".join(topic for topic, _ in found)
    return f"{entered}; topic {names} exists and {proved}; nothing was published"


async def _doubts(
    door: Door, connection: AIOKafkaConnection, topic: str, partition: int
) -> list[str]:
    """Brokers other than Apache Kafka may have ideas of their own about an empty request."""
    request = ProduceRequest(None, -1, int(door.patience * 1000), [(topic, [(partition, b"")])])
    answer = await _asked(door, connection, request)
    [(_, [(_, code, *_)])] = answer.topics
    kind = errors.for_code(code)
    if kind in _NOT_WRITABLE:
        raise verdict(kind(), topic)
    return [] if kind in _NOTHING_TO_WRITE else [f"the broker answered with error {code}"]
