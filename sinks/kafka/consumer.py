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
from aiokafka.protocol.metadata import MetadataRequest
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
_GLANCE = 64 * 1024
"""Enough of a partition to find one record in most batches."""


class Progress(NamedTuple):
    """How far a partition was read: the next offset, and the timestamp of the record before it.

    The timestamp shows later whether that is still the same topic.
    """

    following: int
    timestamp: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Progress | None":
        offset, _, timestamp = text.partition("@")
        if not offset.isdecimal() or not (timestamp.isdecimal() or timestamp == ""):
            return None
        return cls(int(offset), int(timestamp) if timestamp else None)

    def __str__(self) -> str:
        return f"{self.following}" if self.timestamp is None else "@".join(map(str, self))


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


def remembered(checkpoints: Mapping[str, str], cluster: str, topic: str) -> dict[int, Progress]:
    """How far each partition was read, from the journal.

    Checkpoints of other clusters say nothing about this one. Those of the release before name no
    cluster; they count unless the journal knows the topic in another one.
    """
    ours, logs = f"{cluster}/{topic}", {name.rpartition("/")[0] for name in checkpoints}
    moved = any(log.endswith(f"/{topic}") and log != ours for log in logs)
    nameless = {} if moved else _of_log(checkpoints, topic)
    return nameless | _of_log(checkpoints, ours)


def _of_log(checkpoints: Mapping[str, str], log: str) -> dict[int, Progress]:
    found = ((*name.rpartition("/"), value) for name, value in checkpoints.items())
    return {
        int(partition): progress
        for of, _, partition, value in found
        if of == log and partition.isdecimal() and (progress := Progress.parse(value))
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


async def cluster_of(consumer: AIOKafkaConsumer, topic: str) -> str | None:
    """The cluster's own id; None when it does not say."""
    client = consumer._client
    number = min(client.cluster.partitions_for_topic(topic) or {0})
    leader = client.cluster.leader_for_partition(TopicPartition(topic, number))
    node = client.get_random_node() if leader is None or leader < 0 else leader
    asked = MetadataRequest([topic], allow_auto_topic_creation=False)
    answer = await client.send(node, asked)
    return getattr(answer, "cluster_id", None) or None


async def may_read(consumer: AIOKafkaConsumer, topic: str, partitions: Iterable[int]) -> None:
    """Raises when a broker does not allow reading; DESCRIBE and READ are two permissions."""
    wanted = {TopicPartition(topic, number): _NOWHERE for number in partitions}
    for code, _ in (await _fetch(consumer, wanted, 1)).values():
        if code == errors.TopicAuthorizationFailedError.errno:
            raise errors.TopicAuthorizationFailedError


async def _fetch(
    consumer: AIOKafkaConsumer, wanted: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, tuple[int, bytes]]:
    """An error code and undecoded batches from each offset on, in one request for each broker.

    Partitions without a leader are left out.
    """
    client, found = consumer._client, dict[TopicPartition, tuple[int, bytes]]()
    by_leader: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for of, offset in wanted.items():
        leader = client.cluster.leader_for_partition(of)
        if leader is not None and leader >= 0:
            by_leader[leader].append((of.partition, offset, most))
    topics = {of.topic for of in wanted}
    for leader, asked in by_leader.items():
        largest = min(LARGEST_FETCH, most * len(asked))
        request = FetchRequest(0, 0, largest, _READ_COMMITTED, [(t, asked) for t in topics])
        for topic, parts in (await client.send(leader, request)).topics:
            for number, code, *_, batches in parts:
                found[TopicPartition(topic, number)] = code, batches or b""
    return found


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
    fetched = await _fetch(consumer, {partition: offset}, LARGEST_OF_PARTITION)
    _, batches = fetched.get(partition, (0, b""))
    return Unreadable(partition, offset, max(offset + 1, skip_to(batches, offset)))


async def replaced(
    consumer: AIOKafkaConsumer, read: Mapping[TopicPartition, Progress]
) -> list[TopicPartition]:
    """The partitions in which the record that we read last is another one now.

    Then the topic was created again, or this is another cluster: what we know about its offsets
    is wrong. If the record was deleted, nothing before it is left that could be missed.
    """
    known = {of: one for of, one in read.items() if one.timestamp is not None and one.following}
    fetched = await _fetch(consumer, {of: one.following - 1 for of, one in known.items()}, _GLANCE)
    doubtful = [of for of, (_, found) in fetched.items() if not _is_there(found, known[of])]
    return [of for of in doubtful if await _is_replaced(consumer, of, known[of])]


async def _is_replaced(consumer: AIOKafkaConsumer, of: TopicPartition, read: Progress) -> bool:
    last = read.following - 1
    if (await consumer.beginning_offsets([of]))[of] > last:
        return False
    fetched = await _fetch(consumer, {of: last}, LARGEST_OF_PARTITION)
    return of in fetched and not _is_there(fetched[of][1], read)


def _is_there(batches: bytes, read: Progress) -> bool:
    """A border: anyone may publish any bytes, and each codec has exceptions of its own."""
    records, last = MemoryRecords(batches), read.following - 1
    try:
        while records.has_next():
            for record in records.next_batch():
                if record.offset == last:
                    return bool(record.timestamp == read.timestamp)
    except Exception:  # noqa: BLE001  a named border
        return False
    return False


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
