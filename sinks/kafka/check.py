"""`seb check --connect`: the sink can connect and log in, and its topics and their leaders exist.

The check publishes nothing and creates no topic.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from bridge.plugins import Place, Unavailable
from sinks._limit import batch_limit
from sinks.kafka.connection import Connector, abort
from sinks.kafka.delivery import make_connector
from sinks.kafka.errors import CONNECTING, verdict, why_not_connected
from sinks.kafka.settings import KafkaSettings, Topics, fill_topic

_RETRIES, _PAUSE = 5, 0.2
_PERHAPS_NEW = {
    errors.UnknownTopicOrPartitionError.errno,
    errors.LeaderNotAvailableError.errno,
}


@dataclass(frozen=True, slots=True)
class _Topic:
    name: str
    leaders: frozenset[int]


async def check_sink(settings: KafkaSettings, place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` with the first failure."""
    topics = Topics.fill(settings.topic, place).names
    if settings.state_topic is not None:
        topics.append(fill_topic(settings.state_topic, place))
    how = settings.describe_security("authenticated by")
    return await _check_topics(make_connector(settings, place), topics, how, batch_limit(settings))


async def _check_topics(connector: Connector, topics: list[str], how: str, limit: float) -> str:
    try:
        async with asyncio.timeout(limit):
            first = await connector.enter()
            reached = f"reached {first.host}:{first.port} {how}"
            try:
                answer = await _ask(connector, first, topics)
            finally:
                abort(first)
            try:
                found = [_found(*topic) for topic in answer.topics]
                await _reach_leaders(connector, answer, found)
            except Unavailable as error:
                raise Unavailable(f"{reached}, but {error}") from None
            return f"{reached}; {_sentence(found)}"
    except TimeoutError:
        servers = ", ".join(f"{host}:{port}" for host, port in connector.servers)
        raise Unavailable(f"{servers}: no answer within {limit:g} s") from None


async def _ask(connector: Connector, connection: AIOKafkaConnection, topics: list[str]) -> Any:
    """Return the broker's metadata. Not every broker knows a new topic immediately: ask again."""
    request = MetadataRequest(topics, allow_auto_topic_creation=False)
    try:
        answer = await connection.send(request)
        for _ in range(_RETRIES):
            if not _PERHAPS_NEW & {code for code, *_ in answer.topics}:
                break
            await asyncio.sleep(_PAUSE)
            answer = await connection.send(request)
    except CONNECTING as error:
        reason = why_not_connected(error, connector.patience)
        raise Unavailable(f"{connection.host}:{connection.port}: {reason}") from None
    return answer


def _found(code: int, name: str, _internal: object, partitions: Any) -> _Topic:
    kind = errors.for_code(code)
    if kind is errors.UnknownTopicOrPartitionError:
        raise Unavailable(
            f"topic {name} does not exist"
            " (a broker that creates topics automatically creates it for the first CloudEvent;"
            " otherwise create it)"
        )
    if kind is not errors.NoError:
        raise verdict(kind(), name)
    leaders = {leader: number for _, number, leader, *_ in partitions}
    if -1 in leaders:
        raise Unavailable(f"partition {leaders[-1]} of topic {name} has no leader")
    return _Topic(name, frozenset(leaders))


async def _reach_leaders(connector: Connector, answer: Any, found: list[_Topic]) -> None:
    """Connect to each leader at the address that the cluster advertises: producers use no other."""
    addresses = {node: (host, port) for node, host, port, *_ in answer.brokers}
    for leader in sorted({leader for topic in found for leader in topic.leaders}):
        host, port = addresses[leader]
        try:
            abort(await connector.connect_to(host, port))
        except CONNECTING as error:
            reason = why_not_connected(error, connector.patience)
            raise Unavailable(
                f"the cluster advertises broker {leader} at {host}:{port}: {reason}"
            ) from None


def _sentence(found: list[_Topic]) -> str:
    names = ", ".join(topic.name for topic in found)
    exist = f"topic {names} exists" if len(found) == 1 else f"topics {names} exist"
    untested = "nothing was published, so write permission shows only with the first CloudEvent"
    return f"{exist}; {untested}"
