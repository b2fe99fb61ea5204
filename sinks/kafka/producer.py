"""A producer that can be stopped at any moment: it never hangs and leaves nothing behind."""

# aiokafka has no public names for the tasks and connections that have to be ended here.
# ruff: noqa: SLF001

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer

from sinks.kafka.connection import Connector, abort, use_connector
from sinks.kafka.settings import KafkaSettings

LARGEST_BATCH = 256 * 1024
LARGEST_REQUEST = 1024 * 1024
GRACE = 1.0
"""How long an idle producer may take to stop, in seconds."""
ROUNDS = 4
"""How often to cancel a task: it may swallow a cancellation, or connect late."""
_KEPT = {"metadata_max_age_ms": 120_000, "connections_max_idle_ms": 180_000}
"""Azure silently drops connections that are idle for four minutes."""
_NOT_KEPT = {"metadata_max_age_ms": 86_400_000, "connections_max_idle_ms": 10_000}


@asynccontextmanager
async def producing(
    settings: KafkaSettings, connector: Connector
) -> AsyncGenerator[AIOKafkaProducer]:
    """A started producer. Idempotence is off on purpose: see docs/sinks/kafka.md."""
    options: Mapping[str, Any] = _KEPT if settings.keep_connected else _NOT_KEPT
    producer = AIOKafkaProducer(
        bootstrap_servers=list(settings.bootstrap_servers),
        client_id=connector.client_id,
        acks="all",
        enable_idempotence=False,
        request_timeout_ms=int(connector.patience * 1000),
        compression_type=None if settings.compression == "none" else settings.compression,
        max_batch_size=LARGEST_BATCH,
        max_request_size=LARGEST_REQUEST,
        **options,
        **connector.login,
    )
    use_connector(producer.client, connector)
    deliveries = _Deliveries(producer)
    try:
        await producer.start()
        yield producer
    finally:
        await _leave(producer, deliveries)


class _Deliveries:
    """The tasks that send requests: aiokafka keeps them in a local variable."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        self.over = False
        self._carry = producer._sender._send_produce_req
        producer._sender._send_produce_req = self._watched

    async def _watched(self, *args: Any) -> None:
        task = asyncio.current_task()
        if task is None or self.over:  # started at the very end: it would connect again
            return
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        await self._carry(*args)


async def _leave(producer: AIOKafkaProducer, deliveries: _Deliveries) -> None:
    """Stop in order when nothing is in flight; else cut, because the bridge sends it again."""
    stopping: set[asyncio.Task[Any]] = set()
    try:
        if not _owes(producer):
            # In its own task: it may raise a CancelledError that is not meant for us.
            stopping = {asyncio.create_task(producer.stop())}
            await asyncio.wait(stopping, timeout=GRACE)
    finally:
        deliveries.over = True
        await _cut(producer, stopping | deliveries.tasks)


def _owes(producer: AIOKafkaProducer) -> bool:
    accumulator = producer._message_accumulator
    return bool(accumulator._batches or accumulator._pending_batches)


async def _cut(producer: AIOKafkaProducer, tasks: set["asyncio.Task[Any]"]) -> None:
    client, sender = producer.client, producer._sender.sender_task
    producer._closed = True
    tasks = {task for task in (*tasks, sender, client._sync_task) if task}
    for _ in range(ROUNDS):
        running = {task for task in tasks if not task.done()}
        for task in running:
            task.cancel()
        for connection in client._conns.values():
            abort(connection)
        if not running:
            break
        await asyncio.wait(running, timeout=GRACE / ROUNDS)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
