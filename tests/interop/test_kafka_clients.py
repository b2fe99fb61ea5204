"""Kafka: clients in Go, Java, JavaScript and Python read our CloudEvents, and we read their votes."""

import json
from pathlib import Path

import pytest
from cloudevents.core.bindings import kafka as python_sdk
from cloudevents.core.formats.json import JSONFormat
from support import foreign
from support.bridge_process import announce, stage
from support.foreign import Json, Language
from support.foreign_events import about, approved, by_id, faithful, same, vote
from support.kafka_broker import Broker
from support.kafka_reader import read_topic
from support.kafka_stage import kafka_sink

pytestmark = pytest.mark.timeout(240)
MODES = ("binary", "structured")
GROUP = "Kafka"
CLIENTS: dict[Language, tuple[str, str]] = {
    "Go": (
        f"CloudEvents SDK for Go {foreign.go_version('github.com/cloudevents/sdk-go/v2')} with sarama",
        foreign.go_version("github.com/IBM/sarama"),
    ),
    "Java": (
        f"CloudEvents SDK for Java {foreign.java_version('cloudevents-kafka')} with Kafka's client",
        foreign.kafka_version(),
    ),
    "JavaScript": (
        f"CloudEvents SDK for JavaScript {foreign.npm_version('cloudevents')} with kafkajs",
        foreign.npm_version("kafkajs"),
    ),
}


def configuration(folder: Path, servers: str, topics: dict[str, str], votes: str) -> Json:
    sinks = {mode: kafka_sink(servers, topic, mode=mode) for mode, topic in topics.items()}
    return {
        "sinks": {**sinks, "file": {"type": "file", "path": str(folder / "events.jsonl")}},
        "approvals": {
            "from": {"votes": {"sink": "binary", "topic": votes, "trust": "transport"}},
        },
    }


@pytest.mark.parametrize("language", CLIENTS)
async def test_a_client_reads_our_cloudevents_and_its_votes_count(
    kafka: Broker, tmp_path: Path, language: Language, proves
):
    for direction in ("reads events, binary and structured", "sends votes, binary and structured"):
        proves(GROUP, *CLIENTS[language], direction)
    kafka.must_be_real("it has no groups")
    topics = {mode: await kafka.topic() for mode in MODES}
    votes = await kafka.topic()
    servers = kafka.bootstrap
    async with stage(tmp_path, **configuration(tmp_path, servers, topics, votes)) as at:
        await at.start()
        events = {mode: announce(at, mode, started_for=None) for mode in MODES}
        for mode in MODES:
            async with foreign.running(
                language, "kafka-receive", servers, topics[mode], "999"
            ) as reader:
                for event in events.values():
                    read = await reader.ever(about(event, "scheduled"))
                    await faithful(at, read)
        for mode, event in events.items():
            await foreign.ask(language, "kafka-send", servers, votes, mode, vote(event))
            await approved(at, event)
        assert await at.stop() == 0


async def test_the_python_sdk_reads_our_records(kafka: Broker, tmp_path: Path, proves):
    import cloudevents  # noqa: PLC0415  for its version

    proves(
        GROUP,
        "CloudEvents SDK for Python",
        cloudevents.__version__,
        "reads events, binary and structured",
    )
    topics = {mode: await kafka.topic() for mode in MODES}
    config = configuration(tmp_path, kafka.bootstrap, topics, await kafka.topic())
    async with stage(tmp_path, sinks=config["sinks"]) as at:
        announce(at, "reboot")
        await at.start()
        await at.until(lambda: len(by_id(tmp_path)) > 1, "the CloudEvents")
        assert await at.stop() == 0
    for mode in MODES:
        records = await read_topic(kafka.bootstrap, topics[mode])
        assert len(records) == len(by_id(tmp_path))
        for record in records:
            message = python_sdk.KafkaMessage(dict(record.headers), record.key, record.value or b"")
            event = python_sdk.from_kafka(message, JSONFormat())
            written = {**event.get_attributes(), "data": event.get_data()}
            read = json.loads(json.dumps(written, default=lambda at: at.isoformat()))
            same(read, by_id(tmp_path)[read["id"]])


@pytest.mark.parametrize(
    ("language", "software", "version"),
    [
        ("Java", "Kafka Streams, GlobalKTable", foreign.java_version("kafka-streams")),
        ("JavaScript", "kafkajs, a table by key", foreign.npm_version("kafkajs")),
    ],
)
async def test_a_newcomer_knows_what_is_pending_from_the_state_topic(
    kafka: Broker, tmp_path: Path, language: Language, software: str, version: str, proves
):
    proves(GROUP, software, version, "reads state_topic")
    kafka.must_be_real("it keeps a compacted topic")
    state = await kafka.topic(config={"cleanup.policy": "compact"})
    sink = kafka_sink(kafka.bootstrap, await kafka.topic(), state_topic=state)
    async with stage(tmp_path, sinks={"bus": sink}) as at:
        stays, ends = announce(at, "stays", started_for=None), announce(at, "ends")
        await at.start()
        async with foreign.running(language, "table", kafka.bootstrap, state, "99") as table:
            both = await table.until(lambda rows: len(rows) == 2)
            assert set(both) == {f"{stays}/vm-0", f"{ends}/vm-0"}
            at.world.cancel("ends")
            left = await table.until(lambda rows: len(rows) == 1)
        assert left[f"{stays}/vm-0"]["status"] == "Scheduled"
        assert left[f"{stays}/vm-0"]["eventId"] == stays
        assert await at.stop() == 0
