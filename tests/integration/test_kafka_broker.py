"""The Kafka that the tests start does what the tests of the bridge rely on."""

import asyncio
import ssl
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import (
    KafkaConnectionError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from support.certificates import CLIENT
from support.kafka_broker import Broker, Cluster, unsecured_token
from support.kafka_config import PASSWORDS
from support.kcat import kcat_read, kcat_write


async def publish(topic: str, *values: bytes, bootstrap: str, **settings: Any) -> list[int]:
    """The offsets of what all in-sync replicas have taken."""
    settings = {"acks": "all", "request_timeout_ms": 5000} | settings
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings)
    try:
        await producer.start()
        return [(await producer.send_and_wait(topic, value, b"key")).offset for value in values]
    finally:
        await producer.stop()


def login(kafka: Broker, mechanism: str, password: str, user: str = "alice") -> dict[str, Any]:
    return {
        "bootstrap": kafka.address("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def payloads(records: list[dict[str, Any]]) -> list[str]:
    return [record["payload"] for record in records]


async def test_what_is_published_is_read_by_kcat(kafka: Broker):
    topic = await kafka.topic()
    assert await publish(topic, b"one", b"two", bootstrap=kafka.bootstrap) == [0, 1]
    assert payloads(await kcat_read(kafka.bootstrap, topic, 2)) == ["one", "two"]


async def test_kcat_publishes_a_record_of_several_lines_with_key_and_headers(kafka: Broker):
    topic = await kafka.topic()
    value = b'{\n  "eventId": "A"\n}'
    await kcat_write(kafka.bootstrap, topic, value, key="A", headers={"ce_type": "x"})
    (record,) = await kcat_read(kafka.bootstrap, topic, 1)
    assert (record["key"], record["payload"]) == ("A", value.decode())
    assert record["headers"] == ["ce_type", "x"]


async def test_a_topic_has_the_partitions_and_settings_it_was_made_with(kafka: Broker):
    topic = await kafka.topic(3, config={"max.message.bytes": "1000"})
    with pytest.raises(MessageSizeTooLargeError):
        await publish(topic, b"x" * 2000, bootstrap=kafka.bootstrap)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        assert await producer.partitions_for(topic) == {0, 1, 2}


async def test_a_topic_that_was_deleted_is_unknown(kafka: Broker):
    topic = await kafka.topic()
    await kafka.delete_topic(topic)
    with pytest.raises(UnknownTopicOrPartitionError):
        await publish(topic, b"x", bootstrap=kafka.bootstrap, request_timeout_ms=1000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_the_right_password_logs_in_and_a_wrong_one_does_not(kafka: Broker, mechanism: str):
    topic = await kafka.topic()
    assert await publish(topic, b"x", **login(kafka, mechanism, PASSWORDS["alice"])) == [0]
    with pytest.raises(KafkaConnectionError):
        await publish(topic, b"x", **login(kafka, mechanism, "wrong"))


async def test_a_user_of_the_test_logs_in(kafka: Broker):
    topic = await kafka.topic()
    await kafka.add_user("carol", "carol-secret")
    settings = login(kafka, "SCRAM-SHA-512", "carol-secret", user="carol")
    assert await publish(topic, b"x", **settings) == [0]


class Token(AbstractTokenProvider):
    def __init__(self, lifetime: float) -> None:
        self.lifetime = lifetime

    async def token(self) -> str:
        return unsecured_token("alice", self.lifetime)


async def test_a_token_logs_in_until_it_has_run_out(kafka: Broker):
    topic = await kafka.topic()
    settings = login(kafka, "OAUTHBEARER", "")
    assert await publish(topic, b"x", **settings, sasl_oauth_token_provider=Token(600)) == [0]
    # aiokafka takes the broker's refusal of a token for a login, and then knows no broker and no topic.
    late: dict[str, Any] = {"sasl_oauth_token_provider": Token(-600), "request_timeout_ms": 1000}
    with pytest.raises(UnknownTopicOrPartitionError):
        await publish(topic, b"x", **settings, **late)


def tls(kafka: Broker, listener: str, identity: Any = None) -> dict[str, Any]:
    context = kafka.certificates.context(identity)
    return {
        "bootstrap": kafka.address(listener),
        "security_protocol": "SSL",
        "ssl_context": context,
    }


async def test_tls_works_with_a_certificate_that_is_good(kafka: Broker):
    topic = await kafka.topic()
    assert await publish(topic, b"x", **tls(kafka, "SSL")) == [0]
    settings = (
        "-X",
        "security.protocol=ssl",
        "-X",
        f"ssl.ca.location={kafka.certificates.authority}",
    )
    assert payloads(await kcat_read(kafka.address("SSL"), topic, 1, *settings)) == ["x"]


@pytest.mark.parametrize(
    ("listener", "why"), [("EXPIRED", "expired"), ("WRONG_HOST", "not valid for '127.0.0.1'")]
)
async def test_a_server_with_a_bad_certificate_is_refused(kafka: Broker, listener: str, why: str):
    host, port = kafka.address(listener).split(":")
    context = kafka.certificates.context()
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        await asyncio.open_connection(host, int(port), ssl=context)
    with pytest.raises(KafkaConnectionError):
        await publish("any", b"x", **tls(kafka, listener))


async def test_a_password_goes_over_tls_too(kafka: Broker):
    topic = await kafka.topic()
    encrypted = tls(kafka, "SASL_SSL")
    settings = login(kafka, "SCRAM-SHA-256", PASSWORDS["alice"]) | encrypted
    settings["security_protocol"] = "SASL_SSL"
    assert await publish(topic, b"x", **settings) == [0]


async def test_the_name_in_a_client_certificate_is_the_user(kafka: Broker):
    certificates = kafka.certificates
    topic = await kafka.topic()
    await kafka.allow("somebody-else", topic)
    with pytest.raises(TopicAuthorizationFailedError):
        await publish(topic, b"x", **tls(kafka, "SSL", certificates.client))
    await kafka.allow(CLIENT, topic)
    assert await publish(topic, b"x", **tls(kafka, "SSL", certificates.client)) == [0]


@pytest.mark.parametrize("name", ["expired_client", "other_client"])
async def test_a_client_with_a_bad_certificate_is_refused(kafka: Broker, name: str):
    identity = getattr(kafka.certificates, name)
    with pytest.raises(KafkaConnectionError):
        await publish("any", b"x", **tls(kafka, "SSL", identity))


async def test_a_topic_can_be_closed_to_one_user(kafka: Broker):
    topic = await kafka.topic()
    alice = login(kafka, "PLAIN", PASSWORDS["alice"])
    bob = login(kafka, "PLAIN", PASSWORDS["bob"], user="bob")
    await kafka.allow("bob", topic)
    assert await publish(topic, b"x", **bob) == [0]
    with pytest.raises(TopicAuthorizationFailedError):
        await publish(topic, b"x", **alice)


async def test_a_topic_can_be_readable_and_not_writable(kafka: Broker):
    topic = await kafka.topic()
    await kafka.allow("alice", topic, "DESCRIBE")
    await kafka.deny("alice", topic, "WRITE")
    settings = login(kafka, "PLAIN", PASSWORDS["alice"])
    with pytest.raises(TopicAuthorizationFailedError):
        await publish(topic, b"x", **settings)
    async with AIOKafkaProducer(
        bootstrap_servers=settings.pop("bootstrap"), **settings
    ) as producer:
        assert await producer.partitions_for(topic) == {0}


async def test_a_killed_broker_keeps_what_it_took_and_comes_back(lone_kafka: Cluster):
    topic = await lone_kafka.topic()
    assert await publish(topic, b"before", bootstrap=lone_kafka.bootstrap) == [0]
    await lone_kafka.kill(1)
    with pytest.raises(KafkaConnectionError):
        await publish(topic, b"lost", bootstrap=lone_kafka.bootstrap)
    await lone_kafka.restart(1)
    assert await publish(topic, b"after", bootstrap=lone_kafka.bootstrap) == [1]
    assert payloads(await kcat_read(lone_kafka.bootstrap, topic, 2)) == ["before", "after"]


async def test_two_of_three_nodes_go_on_and_the_third_comes_back(kafka_cluster: Cluster):
    topic = await kafka_cluster.topic(3, replication=3)
    settings = {"bootstrap_servers": kafka_cluster.bootstrap, "acks": "all"}
    async with AIOKafkaProducer(**settings, request_timeout_ms=30_000) as producer:

        async def send_to_all(text: str) -> None:
            for partition in range(3):
                await producer.send_and_wait(topic, text.encode(), partition=partition)

        await send_to_all("before")
        await kafka_cluster.kill(1)
        await send_to_all("meanwhile")
        await kafka_cluster.restart(1)
        await send_to_all("after")
    records = await kcat_read(kafka_cluster.bootstrap, topic, 9)
    for partition in range(3):
        mine = [record for record in records if record["partition"] == partition]
        assert payloads(mine) == ["before", "meanwhile", "after"]
