"""A consumer that can be left at any moment: it never hangs, and nothing of it stays behind."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer

from sinks.kafka.connecting import Door, hang_up, use_door

LARGEST_FETCH = 4 * 1024 * 1024
LARGEST_OF_PARTITION = 1024 * 1024
LONG_POLL = 2.0
"""How long a broker may keep a fetch that has nothing to say, in seconds."""
GRACE = 1.0
"""How long a consumer may take to say goodbye, in seconds."""


@asynccontextmanager
async def consuming(door: Door, group: str | None) -> AsyncGenerator[AIOKafkaConsumer]:
    """A started consumer that reads nothing yet, and starts nowhere without being told."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=[f"{host}:{port}" for host, port in door.servers],
        client_id=door.client_id,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        fetch_max_wait_ms=int(LONG_POLL * 1000),
        fetch_max_bytes=LARGEST_FETCH,
        max_partition_fetch_bytes=LARGEST_OF_PARTITION,
        request_timeout_ms=int(door.patience * 1000),
        # Azure cuts connections that were silent for four minutes, and does not say so.
        metadata_max_age_ms=60_000,
        connections_max_idle_ms=180_000,
        **door.login,
    )
    use_door(consumer._client, door)  # noqa: SLF001  it has no other name
    try:
        await consumer.start()
        if group is not None:
            _hear_commits(consumer._coordinator)  # noqa: SLF001
        yield consumer
    finally:
        await _leave(consumer)


def _hear_commits(coordinator: Any) -> None:
    """A commit that was given up still ends, and asyncio would complain that nobody listened."""
    commit = coordinator._do_commit_offsets  # noqa: SLF001

    def begin(*args: Any) -> "asyncio.Task[None]":
        task = asyncio.create_task(commit(*args))
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return task

    coordinator._do_commit_offsets = begin  # noqa: SLF001


def fetching(consumer: AIOKafkaConsumer) -> "asyncio.Task[None]":
    """The task that brings the records; when it ends, none come any more, and nobody says so."""
    task: asyncio.Task[None] = consumer._fetcher.error_future  # noqa: SLF001
    return task


async def _leave(consumer: AIOKafkaConsumer) -> None:
    # In a task of its own, since in an outage it raises a CancelledError that is not meant for us.
    tasks = _tasks(consumer)
    stopping = asyncio.create_task(consumer.stop())
    try:
        await asyncio.wait({stopping}, timeout=GRACE)
    finally:
        await _cut(consumer, tasks | _tasks(consumer) | {stopping})


def _tasks(consumer: AIOKafkaConsumer) -> set["asyncio.Task[Any]"]:
    """Whatever runs on its behalf; in an outage its own `stop` leaves half of it behind."""
    fetcher, coordinator = consumer._fetcher, consumer._coordinator  # noqa: SLF001
    of_fetcher = (fetcher._fetch_task, *fetcher._pending_tasks) if fetcher else ()  # noqa: SLF001
    names = ("_coordination_task", "_heartbeat_task", "_commit_refresh_task")
    of_coordinator = (getattr(coordinator, n, None) for n in (*names, "_reset_committed_task"))
    found = (*of_fetcher, *of_coordinator, consumer._client._sync_task)  # noqa: SLF001
    return {task for task in found if task is not None}


async def _cut(consumer: AIOKafkaConsumer, tasks: set["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    for connection in consumer._client._conns.values():  # noqa: SLF001
        hang_up(connection)
    await asyncio.wait(tasks, timeout=GRACE)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
