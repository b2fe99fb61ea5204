"""A consumer that can be stopped at any moment, and what it knows about partitions."""

# aiokafka has no public names for the tasks and connections that have to be ended here.
# ruff: noqa: SLF001

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition, errors
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record import MemoryRecords

from sinks.kafka.connection import Connector, abort, use_connector

LARGEST_FETCH = 4 * 1024 * 1024
LARGEST_OF_PARTITION = 1024 * 1024
LONG_POLL = 2.0
"""How long a broker may delay a fetch without records, in seconds."""
GRACE = 1.0
"""How long a consumer may take to stop, in seconds."""
_ASK_AGAIN = 0.1
_NOWHERE = 2**62
"""An offset that no partition has: a broker that allows reading answers without records."""
_READ_COMMITTED = 1


class Unreadable(NamedTuple):
    """A batch that cannot be decoded: where it was met, and the offset that follows it."""

    partition: TopicPartition
    offset: int
    following: int


@asynccontextmanager
async def consuming(connector: Connector) -> AsyncGenerator[AIOKafkaConsumer]:
    """A started consumer without partitions, offsets or a consumer group."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=[f"{host}:{port}" for host, port in connector.servers],
        client_id=connector.client_id,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        fetch_max_wait_ms=int(LONG_POLL * 1000),
        fetch_max_bytes=LARGEST_FETCH,
        max_partition_fetch_bytes=LARGEST_OF_PARTITION,
        request_timeout_ms=int(connector.patience * 1000),
        # Azure silently drops connections that are idle for four minutes.
        metadata_max_age_ms=60_000,
        connections_max_idle_ms=180_000,
        **connector.login,
    )
    use_connector(consumer._client, connector)
    try:
        await consumer.start()
        yield consumer
    finally:
        await _leave(consumer)


def fetching(consumer: AIOKafkaConsumer) -> "asyncio.Task[None]":
    """The task that fetches records. When it ends, no more records come and nothing is raised."""
    task: asyncio.Task[None] = consumer._fetcher.error_future
    return task


async def _leave(consumer: AIOKafkaConsumer) -> None:
    # In its own task: in an outage it raises a CancelledError that is not meant for us.
    tasks = _tasks(consumer)
    stopping = asyncio.create_task(consumer.stop())
    try:
        await asyncio.wait({stopping}, timeout=GRACE)
    finally:
        await _cut(consumer, tasks | _tasks(consumer) | {stopping})


def _tasks(consumer: AIOKafkaConsumer) -> set["asyncio.Task[Any]"]:
    """All tasks of the consumer; in an outage its own `stop` leaves half of them running."""
    fetcher, coordinator = consumer._fetcher, consumer._coordinator
    of_fetcher = (fetcher._fetch_task, *fetcher._pending_tasks) if fetcher else ()
    of_coordinator = getattr(coordinator, "_reset_committed_task", None)
    found = (*of_fetcher, of_coordinator, consumer._client._sync_task)
    return {task for task in found if task is not None}


async def _cut(consumer: AIOKafkaConsumer, tasks: set["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    for connection in consumer._client._conns.values():
        abort(connection)
    await asyncio.wait(tasks, timeout=GRACE)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()


def remembered(checkpoints: Mapping[str, str], topic: str) -> dict[int, int]:
    """The next offset of each partition, from the journal."""
    found = ((*name.rpartition("/"), value) for name, value in checkpoints.items())
    return {
        int(partition): int(value)
        for of, _, partition, value in found
        if of == topic and partition.isdecimal() and value.isdecimal()
    }


async def partitions_of(consumer: AIOKafkaConsumer, topic: str, patience: float) -> set[int]:
    """Ask the brokers. Raises a KafkaError when they do not answer or do not show the topic."""
    client = consumer._client
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
    """Raises when a broker does not allow reading; DESCRIBE and READ are two permissions."""
    client = consumer._client
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
    """The first offset of each partition that is not older than *since*, or else its end."""
    if not partitions:
        return {}
    # Ask for the end first: a record that arrives in between is then not missed.
    ends = await consumer.end_offsets(list(partitions))
    moment = int(max(since, 0.0) * 1000)
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, moment))
    return {
        each: found[each].offset if found.get(each) is not None else ends[each]
        for each in partitions
    }


def behind(consumer: AIOKafkaConsumer, of: TopicPartition, end: int) -> int:
    """How many offsets the consumer is behind; 0 while it has no position."""
    subscription = consumer._subscription.subscription
    assignment = subscription and subscription.assignment
    if assignment is None or of not in assignment.tps:
        return 0
    state = assignment.state_value(of)
    return max(0, end - state.position) if state.has_valid_position else 0


async def find_unreadable(consumer: AIOKafkaConsumer) -> Unreadable | None:
    """Where the consumer failed to decode a batch; None when it has no batch.

    The consumer does not say where the batch ends. So fetch it again, and read that undecoded.
    """
    fetched: Mapping[TopicPartition, Any] = consumer._fetcher._records
    if not fetched:
        return None
    partition, result = next(iter(fetched.items()))
    offset: int = result._partition_records.next_fetch_offset
    client = consumer._client
    asked = (partition.topic, [(partition.partition, offset, LARGEST_OF_PARTITION)])
    request = FetchRequest(0, 0, LARGEST_OF_PARTITION, _READ_COMMITTED, [asked])
    answer = await client.send(client.cluster.leader_for_partition(partition), request)
    batches = b"".join(found[-1] or b"" for _, parts in answer.topics for found in parts)
    return Unreadable(partition, offset, max(offset + 1, skip_to(batches, offset)))


def skip_to(batches: bytes, position: int) -> int:
    """The offset after the first batch from *position* on that cannot be decoded; 0 if all can.

    A batch is compressed as a whole, so without the codec all of its records are lost.
    """
    records = MemoryRecords(batches)
    while records.has_next():
        batch = records.next_batch()
        if batch.next_offset > position and not _decodes(batch):
            return int(batch.next_offset)
    return 0


def _decodes(batch: Any) -> bool:
    """A border: anyone may publish any bytes, and each codec has exceptions of its own."""
    try:
        return bool(batch.validate_crc()) and all(True for _ in batch)
    except Exception:  # noqa: BLE001  a named border
        return False
