"""The Kafka approval source by itself, against a real broker."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiokafka.codec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from support.cloudevents import batch
from support.kafka_admin import KafkaAdmin
from support.kafka_broker import Broker, Cluster
from support.kafka_config import PASSWORDS
from support.kafka_proxy import Proxy, proxied
from support.kafka_stage import next_offsets
from support.kcat import kcat, kcat_write
from support.source_reader import PATIENCE, PLACE, SourceReader, bodies
from support.until import until

from bridge.plugins import Delivery, Unavailable
from sinks.kafka import (
    KafkaApprovals,
    KafkaSettings,
    consumer,
    sink,
    source,
    subscription,
)


def approvals_from(servers: str, topic: str, **more: Any) -> KafkaApprovals:
    return KafkaApprovals.model_validate(
        {"type": "kafka", "bootstrap_servers": [servers], "topic": topic, "trust": "transport"}
        | more
    )


async def publish(kafka: Broker, topic: str, *values: bytes | None, **more: Any) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all")
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(topic, value, **{"key": b"k", **more})
    finally:
        await producer.stop()


async def quiet(deliveries: AsyncIterator[Delivery], seconds: float = 0.5) -> bool:
    """Whether nothing comes; the iterator is of no use after."""
    try:
        async with asyncio.timeout(seconds):
            await anext(deliveries)
    except TimeoutError:
        return True
    return False


@pytest.fixture(autouse=True)
def real(kafka: Broker) -> None:
    kafka.must_be_real("it finds no record by its time, where a source begins")


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "LONG_POLL", 0.1)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PROBE", 0.2)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, often: None) -> None:
    monkeypatch.setattr(subscription, "LIMIT", 1.0)


@pytest.fixture
async def proxy(kafka: Broker):
    async with proxied(kafka.bootstrap) as proxy:
        yield proxy


async def test_records_of_kcat_come_with_headers_a_position_and_a_checkpoint(kafka: Broker):
    topic = await kafka.topic()
    value = b'{"eventId": "A",\n "approver": "me"}'
    await kcat_write(kafka.bootstrap, topic, value, headers={"content-type": "application/json"})
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        (delivery,) = await intake.take(deliveries, 1)
    cluster = await cluster_id(kafka)
    assert delivery.recorded is not None
    assert abs((delivery.recorded - datetime.now(UTC)).total_seconds()) < PATIENCE
    stamp = round(delivery.recorded.timestamp() * 1000)
    assert delivery == Delivery(
        body=value,
        headers=[("content-type", b"application/json")],
        position=f"{topic}/0/0",
        checkpoint=(f"{cluster}/{topic}/0", f"1@{stamp}"),
        log=f"{intake.name}@{cluster}/{topic}/0",
        recorded=delivery.recorded,
    )


async def cluster_id(kafka: Broker) -> str:
    from aiokafka.admin import AIOKafkaAdminClient  # noqa: PLC0415  here alone

    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        return (await admin.describe_cluster())["cluster_id"]
    finally:
        await admin.close()


async def test_every_partition_is_read_and_each_from_where_the_journal_left_off(kafka: Broker):
    topic = await kafka.topic(3)
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    for number in range(3):
        await publish(kafka, topic, b"first-%d" % number, partition=number)
    assert sorted(await intake.session(3)) == [b"first-0", b"first-1", b"first-2"]
    for number in range(3):
        await publish(kafka, topic, b"second-%d" % number, partition=number)
    async with intake.open() as deliveries:
        again = await intake.take(deliveries, 3)
        assert sorted(bodies(again)) == [b"second-0", b"second-1", b"second-2"]
        assert await quiet(deliveries)
    assert next_offsets(intake.checkpoints) == {f"{topic}/{number}": "2" for number in range(3)}


async def test_what_was_not_recorded_comes_again(kafka: Broker):
    topic = await kafka.topic()
    await publish(kafka, topic, b"one", b"two")
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        await anext(deliveries)
    assert await intake.session(2) == [b"one", b"two"]


async def test_a_first_start_looks_back_by_time(kafka: Broker):
    topic = await kafka.topic()
    now = int(time.time() * 1000)
    await publish(kafka, topic, b"old", timestamp_ms=now - 7_200_000)
    await publish(kafka, topic, b"recent", timestamp_ms=now - 60_000)
    assert await SourceReader(approvals_from(kafka.bootstrap, topic), name="near").session(1) == [
        b"recent"
    ]
    far = SourceReader(approvals_from(kafka.bootstrap, topic), lookback=10_000, name="far")
    assert await far.session(2) == [b"old", b"recent"]


async def test_without_lookback_only_what_comes_counts_also_after_a_break(kafka: Broker):
    topic = await kafka.topic()
    await publish(kafka, topic, b"before", timestamp_ms=int(time.time() * 1000) - 1000)
    intake = SourceReader(approvals_from(kafka.bootstrap, topic), lookback=0.0)
    async with intake.open() as deliveries:
        assert await quiet(deliveries, 0.2)
    await publish(kafka, topic, b"in the break")
    assert await intake.session(1) == [b"in the break"]


async def test_new_partitions_are_read_from_their_beginning(kafka: Broker, often: None):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic), lookback=0.0)
    await publish(kafka, topic, b"before", timestamp_ms=int(time.time() * 1000) - 1000)
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 2))
        await until(lambda: intake.heard)
        await add_partitions(kafka, topic, 2)
        earlier = int(time.time() * 1000) - 60_000
        await publish(kafka, topic, b"there", partition=1, timestamp_ms=earlier)
        await until(lambda: f"{topic}/1" in next_offsets(intake.checkpoints))
        await publish(kafka, topic, b"here", partition=0)
        assert bodies(await coming) == [b"there", b"here"]


async def add_partitions(kafka: Broker, topic: str, total: int) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions  # noqa: PLC0415  here alone

    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_partitions({topic: NewPartitions(total)})
    finally:
        await admin.close()


async def test_a_tombstone_is_not_read_and_the_checkpoint_passes_it(kafka: Broker):
    topic = await kafka.topic()
    await publish(kafka, topic, None, b"")
    await publish(kafka, topic, None, headers=[("ce_type", b"x")])
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        taken = await intake.take(deliveries, 3)
    assert [delivery.unread for delivery in taken] == ["tombstone", None, None]
    assert next_offsets(intake.checkpoints) == {f"{topic}/0": "3"}


def one_batch(size: int) -> list[str]:
    """Options with which kcat sends so many records together, however slowly it reads them."""
    return ["-X", "linger.ms=20000", "-X", f"batch.num.messages={size}"]


async def test_what_cannot_be_unpacked_is_passed_once_and_costs_nothing_else(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    topic = await kafka.topic()
    await kcat_write(kafka.bootstrap, topic, b"before")
    lines = b"\n".join(b"line %d" % number for number in range(50))
    together = ["-z", "lz4", *one_batch(50)]
    await kcat("-P", "-b", kafka.bootstrap, "-t", topic, *together, stdin=lines + b"\n")
    await kcat_write(kafka.bootstrap, topic, b"after")
    monkeypatch.setattr(aiokafka.codec, "has_lz4", lambda: False)
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    with caplog.at_level(logging.WARNING):
        async with intake.open() as deliveries:
            taken = await intake.take(deliveries, 3)
    assert bodies(taken) == [b"before", b"", b"after"]
    assert [each.position for each in taken] == [f"{topic}/0/{n}" for n in (0, 1, 51)]
    assert next_offsets(intake.checkpoints) == {f"{topic}/0": "52"}
    (said,) = [r for r in caplog.records if r.message == "approvals.unreadable"]
    assert "lz4" in vars(said)["error"]
    assert (vars(said)["topic"], vars(said)["partition"], vars(said)["offset"]) == (topic, 0, 1)


async def test_two_batches_that_cannot_be_unpacked_are_passed_and_logged_once(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    topic = await kafka.topic(2)
    for partition in range(2):
        for value in (b"packed", b"plain"):
            packed = ["-z", "lz4", *one_batch(9)] if value == b"packed" else []
            where = ["-b", kafka.bootstrap, "-t", topic, "-p", str(partition)]
            await kcat("-P", *where, *packed, stdin=b"\n".join([value * 50] * 9) + b"\n")
    monkeypatch.setattr(aiokafka.codec, "has_lz4", lambda: False)
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    with caplog.at_level(logging.WARNING):
        taken = await intake.session(20)
    assert sorted(taken) == [b"", b"", *[b"plain" * 50] * 18]
    assert next_offsets(intake.checkpoints) == {f"{topic}/{number}": "18" for number in range(2)}
    assert [r.message for r in caplog.records].count("approvals.unreadable") == 1


async def test_what_a_transaction_took_back_is_not_delivered(kafka: Broker, often: None):
    topic = await kafka.topic()
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=topic)
    await producer.start()
    try:
        with contextlib.suppress(ZeroDivisionError):
            async with producer.transaction():
                await producer.send_and_wait(topic, b"never mind")
                raise ZeroDivisionError
        async with producer.transaction():
            await producer.send_and_wait(topic, b"meant")
    finally:
        await producer.stop()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        assert bodies(await intake.take(deliveries, 1)) == [b"meant"]
        intake.heard.clear()
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: 0 in intake.heard)
        await publish(kafka, topic, b"more")
        await coming


@pytest.mark.parametrize("checkpoint", ["900", "0"])
async def test_an_offset_that_is_gone_leads_to_what_there_is_and_is_said_once(
    kafka: Broker, checkpoint: str, caplog: pytest.LogCaptureFixture
):
    topic = await kafka.topic()
    age = 7_200_000 if checkpoint == "0" else 0
    stamp = {"timestamp_ms": int(time.time() * 1000) - age}
    await publish(kafka, topic, b"zero", b"one", b"two", **stamp)
    if checkpoint == "0":
        await delete_records(kafka, topic, 2)
    intake = SourceReader(
        approvals_from(kafka.bootstrap, topic), checkpoints={f"{topic}/0": checkpoint}
    )
    expected = [b"two"] if checkpoint == "0" else [b"zero", b"one", b"two"]
    with caplog.at_level(logging.WARNING):
        assert await intake.session(len(expected)) == expected
    (said,) = [r for r in caplog.records if r.message == "approvals.offset_missing"]
    assert (vars(said)["offset"], vars(said)["partition"]) == (int(checkpoint), 0)
    del intake.checkpoints[f"{topic}/0"]
    assert next_offsets(intake.checkpoints) == {f"{topic}/0": "3"}


async def delete_records(kafka: Broker, topic: str, before: int) -> None:
    from confluent_kafka import TopicPartition  # noqa: PLC0415  here alone

    assert isinstance(kafka.admin, KafkaAdmin)
    client = kafka.admin._client  # aiokafka cannot ask a broker of today to do it
    futures = client.delete_records([TopicPartition(topic, 0, before)])
    for future in futures.values():
        await asyncio.to_thread(future.result, PATIENCE)


async def test_a_topic_that_is_created_again_is_read_without_a_restart(kafka: Broker, hasty: None):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    await publish(kafka, topic, b"one", b"two", b"three")
    assert len(await intake.session(3)) == 3
    await kafka.delete_topic(topic)
    with pytest.raises(Unavailable, match=f"topic {topic} does not exist"):
        await intake.session(1)
    await kafka.topic(name=topic)
    await publish(kafka, topic, b"anew")
    assert await intake.session(1) == [b"anew"]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
async def test_a_topic_that_is_created_again_while_the_bridge_is_away_is_read_whole(
    kafka: Broker, count: int, caplog: pytest.LogCaptureFixture
):
    """With as many records as before, or more, an offset alone would skip some of them."""
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    await publish(kafka, topic, b"one", b"two", b"three")
    assert len(await intake.session(3)) == 3
    await kafka.delete_topic(topic)
    await kafka.topic(name=topic)
    anew = [b"anew-%d" % number for number in range(count)]
    await publish(kafka, topic, *anew)
    with caplog.at_level(logging.WARNING):
        assert await intake.session(count) == anew
    assert [r.message for r in caplog.records].count("approvals.offset_missing") == 1


async def test_a_topic_that_is_created_again_is_noticed_while_the_bridge_reads_it(
    kafka: Broker, often: None
):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    await publish(kafka, topic, b"one")
    async with intake.open() as deliveries:
        await intake.take(deliveries, 1)
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        await kafka.delete_topic(topic)
        await kafka.topic(name=topic)
        await publish(kafka, topic, b"anew")
        try:
            found = bodies(await coming)
        except Unavailable:
            found = []
    assert found or await intake.session(1) == [b"anew"]
    assert found in ([], [b"anew"])


async def test_what_is_deleted_by_retention_is_not_a_new_topic(
    kafka: Broker, often: None, caplog: pytest.LogCaptureFixture
):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    await publish(kafka, topic, b"one", b"two", b"three")
    async with intake.open() as deliveries:
        await intake.take(deliveries, 3)
        await delete_records(kafka, topic, 3)
        coming = asyncio.create_task(intake.take(deliveries, 1))
        count = len(intake.heard)
        await until(lambda: len(intake.heard) > count + 2)
        await publish(kafka, topic, b"four")
        assert bodies(await coming) == [b"four"]
    assert "approvals.offset_missing" not in [r.message for r in caplog.records]


async def test_an_offset_of_another_cluster_skips_nothing(kafka: Broker):
    """The bootstrap servers may be those of another cluster, with a topic of the same name."""
    topic = await kafka.topic()
    await publish(kafka, topic, b"one", b"two", b"three")
    elsewhere = {f"{topic}/0": "2", f"other/{topic}/0": "2@1"}
    intake = SourceReader(approvals_from(kafka.bootstrap, topic), checkpoints=elsewhere)
    assert await intake.session(3) == [b"one", b"two", b"three"]
    before = SourceReader(approvals_from(kafka.bootstrap, topic), checkpoints={f"{topic}/0": "2"})
    assert await before.session(1) == [b"three"]


@pytest.mark.parametrize("stamp", [0, 2**62])
async def test_a_producer_may_give_any_timestamp(kafka: Broker, stamp: int):
    # The broker must not delete what seems to be older than its retention time.
    endless = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    topic = await kafka.topic(config=endless)
    await publish(kafka, topic, b"one", b"two", timestamp_ms=stamp)
    intake = SourceReader(approvals_from(kafka.bootstrap, topic), lookback=time.time())
    async with intake.open() as deliveries:
        (first, _) = await intake.take(deliveries, 2)
    assert first.recorded == (datetime.fromtimestamp(0, UTC) if stamp == 0 else None)
    async with intake.open() as deliveries:
        assert await quiet(deliveries)


async def test_the_lag_is_reported_also_without_records(kafka: Broker, often: None):
    topic = await kafka.topic()
    await publish(kafka, topic, *[b"%d" % number for number in range(5)])
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        await intake.take(deliveries, 1)
        await until(lambda: intake.heard)
        assert intake.heard[0] in {4, 5}
        coming = asyncio.create_task(intake.take(deliveries, 5))
        await until(lambda: intake.heard[-1] == 0)
        count = len(intake.heard)
        await until(lambda: len(intake.heard) >= count + 3)
        assert set(intake.heard[count:]) == {0}
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


@pytest.mark.parametrize("how", ["down", "stall"])
async def test_brokers_that_are_gone_are_noticed_in_silence(
    kafka: Broker, proxy: Proxy, how: str, hasty: None
):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(proxy.address, topic))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        await proxy.down() if how == "down" else proxy.stall()
        with pytest.raises(Unavailable):
            await coming
    proxy.release()
    if how == "down":
        with pytest.raises(Unavailable, match="nothing listens there"):
            await intake.session(1)
        await proxy.up()
    await publish(kafka, topic, b"after")
    assert await intake.session(1) == [b"after"]


async def test_a_fetcher_that_died_is_noticed(kafka: Broker):
    topic = await kafka.topic()
    intake = SourceReader(approvals_from(kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        tasks = asyncio.all_tasks()
        (fetcher,) = [
            t for t in tasks if getattr(t.get_coro(), "__name__", "") == "_fetch_requests_routine"
        ]
        fetcher.cancel()
        with pytest.raises(Unavailable, match="the consumer broke"):
            await coming


async def test_records_that_wait_and_do_not_come_are_noticed(
    kafka: Broker, often: None, monkeypatch: pytest.MonkeyPatch
):
    topic = await kafka.topic()
    await publish(kafka, topic, b"one", b"two")
    monkeypatch.setattr(source, "STUCK", 0.3)
    monkeypatch.setattr(AIOKafkaConsumer, "getone", lambda _: asyncio.sleep(PATIENCE))
    with pytest.raises(Unavailable, match="2 records wait"):
        await SourceReader(approvals_from(kafka.bootstrap, topic)).session(1)


async def test_a_vm_holds_as_many_connections_as_the_docs_say(kafka: Broker, proxy: Proxy):
    topic, events = await kafka.topic(), await kafka.topic()
    settings = KafkaSettings.model_validate(
        {"type": "kafka", "bootstrap_servers": [proxy.address], "topic": events}
    )
    async with contextlib.AsyncExitStack() as stack:
        send = await stack.enter_async_context(sink.open(settings, PLACE))
        await send(batch(3))
        await until(lambda: proxy.connections == 1)
        await publish(kafka, topic, b"one")
        intake = SourceReader(approvals_from(proxy.address, topic))
        deliveries = await stack.enter_async_context(intake.open())
        await intake.take(deliveries, 1)
        await until(lambda: proxy.connections == 2)
        assert proxy.connections == 2


@pytest.mark.parametrize("how", ["up", "down", "stall"])
async def test_leaving_is_quick_and_leaves_nothing_behind(kafka: Broker, proxy: Proxy, how: str):
    topic = await kafka.topic()
    tasks = asyncio.all_tasks()
    intake = SourceReader(approvals_from(proxy.address, topic))

    async def session() -> None:
        async with intake.open() as deliveries:
            await anext(deliveries)

    running = asyncio.create_task(session())
    await until(lambda: intake.heard)
    if how != "up":
        await proxy.down() if how == "down" else proxy.stall()
        await asyncio.sleep(0.3)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 5
    await until(lambda: ours(asyncio.all_tasks() - tasks) == [])
    if how == "up":
        await until(lambda: proxy.connections == 0)
    proxy.release()


def ours(tasks: set["asyncio.Task[Any]"]) -> list[str]:
    """Without those of the proxy."""
    return [repr(task) for task in tasks if "kafka_proxy" not in repr(task)]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("missing", "topic .* does not exist"),
        ("unseen", "does not allow this client to read topic"),
        ("unreadable", "does not allow this client to read topic"),
        ("wrong password", "it refuses the login"),
        ("expired certificate", "its certificate is not accepted: certificate has expired"),
    ],
)
async def test_why_it_cannot_connect_is_said_in_one_sentence(
    kafka: Broker, how: str, why: str, monkeypatch: pytest.MonkeyPatch
):
    topic = await kafka.topic()
    server, more = kafka.address("SASL_PLAINTEXT"), {"sasl": login("alice")}
    if how == "missing":
        monkeypatch.setattr(subscription, "LIMIT", 1.0)
        topic = "missing"
    elif how == "unseen":
        await kafka.deny("alice", topic)
    elif how == "unreadable":
        await kafka.allow("alice", topic, "DESCRIBE")
    elif how == "wrong password":
        more = {"sasl": login("alice") | {"password": "wrong"}}
    else:
        server, more = (
            kafka.address("EXPIRED"),
            {"tls": {"ca": str(kafka.certificates.authority)}},
        )
    intake = SourceReader(approvals_from(server, topic, **more))
    with pytest.raises(Unavailable, match=why):
        await intake.session(0)


def login(user: str) -> dict[str, str]:
    return {"mechanism": "PLAIN", "username": user, "password": PASSWORDS[user]}


async def test_a_rotated_password_file_is_taken_up_without_leaving(
    kafka: Broker, tmp_path: Path, often: None
):
    topic = await kafka.topic()
    user, file = f"user-{topic}", tmp_path / "password"
    await kafka.add_user(user, "old")
    file.write_text("old")
    sasl = {"mechanism": "SCRAM-SHA-256", "username": user, "password": {"file": str(file)}}
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxied(kafka.address("SASL_PLAINTEXT")))
        intake = SourceReader(approvals_from(proxy.address, topic, sasl=sasl))
        deliveries = await stack.enter_async_context(intake.open())
        await publish(kafka, topic, b"one")
        await intake.take(deliveries, 1)
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        await kafka.add_user(user, "new")
        file.write_text("new")
        count = len(intake.heard)
        await until(lambda: len(intake.heard) > count + 2)
        await proxy.hang_up()
        await publish(kafka, topic, b"two")
        assert bodies(await coming) == [b"two"]


async def test_a_node_that_comes_back_is_read_again(lone_kafka: Cluster, hasty: None):
    topic = await lone_kafka.topic()
    intake = SourceReader(approvals_from(lone_kafka.bootstrap, topic))
    async with intake.open() as deliveries:
        coming = asyncio.create_task(intake.take(deliveries, 1))
        await until(lambda: intake.heard)
        await lone_kafka.kill(1)
        with pytest.raises(Unavailable):
            await coming
    await lone_kafka.restart(1)
    await publish(lone_kafka, topic, json.dumps({"eventId": "A"}).encode())
    assert await intake.session(1) == [b'{"eventId": "A"}']
