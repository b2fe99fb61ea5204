"""What aiokafka raises, and our words for it."""

import asyncio
import inspect
import ssl
from socket import gaierror

import pytest
from aiokafka import errors

from bridge.plugins import Rejected, Unavailable
from sinks.kafka.errors import InvalidRecordError, Lost, verdict, why_not_connected

REJECTED = {
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
    errors.InvalidTopicError,
    errors.CorruptRecordException,
    errors.InvalidTimestampError,
}
FOREIGN = sorted(
    {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_error_of_aiokafka_is_one_of_our_two_words(kind):
    said = verdict(kind(), "news")
    assert isinstance(said, Rejected if kind in REJECTED else Unavailable)
    assert str(said).strip()
    assert "\n" not in str(said)


def test_there_are_errors_to_look_at():
    assert len(FOREIGN) > 80


def test_an_unknown_error_needs_a_new_connection():
    assert isinstance(verdict(RuntimeError("odd"), "news"), Lost)
    assert str(verdict(RuntimeError(), "news")) == "RuntimeError"


def test_a_code_that_aiokafka_does_not_know_is_known_here():
    assert errors.for_code(87) is InvalidRecordError
    assert isinstance(verdict(InvalidRecordError(), "news"), Rejected)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.TopicAuthorizationFailedError(), "does not allow this client to write topic news"),
        (errors.UnknownTopicOrPartitionError(), "topic news does not exist"),
        (errors.NotEnoughReplicasError(), "topic news has too few in-sync replicas"),
        (errors.UnknownError(), "the broker answered UnknownError"),
    ],
)
def test_what_an_operator_can_fix_is_retried_with_a_reason(error, said):
    told = verdict(error, "news")
    assert type(told) is Unavailable
    assert said in str(told)


def caused(cause: BaseException) -> errors.KafkaConnectionError:
    error = errors.KafkaConnectionError("Connection at 127.0.0.1:1 closed")
    error.__cause__ = cause
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "x")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(), "nothing listens there"),
        (gaierror(-2, "x"), "its name cannot be resolved"),
        (TimeoutError(), "no answer within 3 s"),
        (OSError(113, "No route to host"), "No route to host"),
        (caused(EOFError()), "it closed the connection"),
        (caused(ConnectionResetError()), "it closed the connection"),
        (asyncio.IncompleteReadError(b"", 4), "it closed the connection"),
        (alert("WRONG_VERSION_NUMBER"), "it does not use TLS on this port"),
        (caused(alert("SSLV3_ALERT_CERTIFICATE_EXPIRED")), "(certificate expired)"),
        (alert("ODD"), "TLS failed: ODD"),
        (errors.SaslAuthenticationFailed("bad"), "it refuses the login: bad"),
        (errors.UnsupportedSaslMechanismError("x"), "does not support this SASL mechanism"),
        (errors.IllegalSaslStateError("x"), "does not expect SASL"),
        (ValueError("Server sent wrong signature!"), "refuses the login: Server sent wrong"),
        (caused(Unavailable("no secret")), "there is no token: no secret"),
        (errors.KafkaError("odd"), "KafkaError: odd"),
    ],
)
def test_why_a_broker_cannot_be_used(error, said):
    assert said in why_not_connected(error, 3)
