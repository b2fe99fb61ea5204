"""Where in a topic to read: its partitions, their beginnings, and what follows the unreadable."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition, errors
from aiokafka.protocol.fetch import FetchRequest

_ASK_AGAIN = 0.1
_NOWHERE = 2**62
"""An offset that no partition has: a broker that lets us read says so, and sends nothing."""
_UNREADABLE = (errors.CorruptRecordException, errors.UnsupportedCodecError)


def remembered(checkpoints: Mapping[str, str], topic: str) -> dict[int, int]:
    """The next offset of each partition that the journal knows."""
    found = ((*name.rpartition("/"), value) for name, value in checkpoints.items())
    return {
        int(partition): int(value)
        for of, _, partition, value in found
        if of == topic and partition.isdecimal() and value.isdecimal()
    }


async def partitions_of(consumer: AIOKafkaConsumer, topic: str, patience: float) -> set[int]:
    """Asked of the brokers now. Raises a KafkaError when they are silent, or do not show it."""
    client = consumer._client  # noqa: SLF001
    client.add_topic(topic)
    clock = asyncio.get_running_loop().time
    give_up = clock() + patience
    while True:
        if not await client.force_metadata_update():
            raise errors.NodeNotReadyError
        found: set[int] | None = client.cluster.partitions_for_topic(topic)
        if found:
            return found
        if topic in client.cluster.unauthorized_topics:
            raise errors.TopicAuthorizationFailedError
        if clock() >= give_up:
            raise errors.UnknownTopicOrPartitionError
        await asyncio.sleep(_ASK_AGAIN)


async def may_read(consumer: AIOKafkaConsumer, topic: str, partitions: Iterable[int]) -> None:
    """Raises when a broker says no: to see a topic is one right, and to read it another."""
    client = consumer._client  # noqa: SLF001
    by_leader: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for number in partitions:
        leader = client.cluster.leader_for_partition(TopicPartition(topic, number))
        if leader is not None and leader >= 0:
            by_leader[leader].append((number, _NOWHERE, 1))
    for leader, asked in by_leader.items():
        answer = await client.send(leader, FetchRequest(0, 0, 1, 1, [(topic, asked)]))
        codes = [code for _, found in answer.topics for _, code, *_ in found]
        if errors.TopicAuthorizationFailedError.errno in codes:
            raise errors.TopicAuthorizationFailedError


async def starts(
    consumer: AIOKafkaConsumer, partitions: Sequence[TopicPartition], since: float
) -> Mapping[TopicPartition, int]:
    """The first offset of each that is not older than *since*, or else its end."""
    if not partitions:
        return {}
    # The end first: what comes in between is then found by its time, or follows the end.
    ends = await consumer.end_offsets(list(partitions))
    moment = int(max(since, 0.0) * 1000)
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, moment))
    return {
        each: found[each].offset if found.get(each) is not None else ends[each]
        for each in partitions
    }


def behind(consumer: AIOKafkaConsumer, of: TopicPartition, end: int) -> int:
    """How many offsets the consumer has before it; none where it has no place yet."""
    subscription = consumer._subscription.subscription  # noqa: SLF001
    assignment = subscription and subscription.assignment
    if assignment is None or of not in assignment.tps:
        return 0
    state = assignment.state_value(of)
    return max(0, end - state.position) if state.has_valid_position else 0


def after_unreadable(
    consumer: AIOKafkaConsumer, problem: BaseException
) -> tuple[TopicPartition, int, int] | None:
    """Which partition holds what cannot be read, where, and what follows; None: it is not that.

    A batch is compressed as a whole, so all of it is lost to one who lacks the method.
    """
    held: Mapping[TopicPartition, Any] = consumer._fetcher._records  # noqa: SLF001
    other = isinstance(problem, errors.KafkaError) and not isinstance(problem, _UNREADABLE)
    if other or not held:
        return None
    of, result = next(iter(held.items()))
    first: int = result._partition_records.next_fetch_offset  # noqa: SLF001
    return of, first, max(first + 1, _end_of_batch(problem))


def _end_of_batch(problem: BaseException) -> int:
    """Only the iterator that failed knows which batch it had in its hands."""
    trace = problem.__traceback__
    while trace is not None:
        batch = trace.tb_frame.f_locals.get("next_batch")
        if batch is not None:
            return int(batch.next_offset)
        trace = trace.tb_next
    return 0
