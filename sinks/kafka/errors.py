"""Turns what aiokafka raises into `Unavailable` or `Rejected`, with one sentence."""

from collections.abc import Callable

from aiokafka import errors

from bridge.plugins import Rejected, Unavailable
from sinks import _network


class Lost(Unavailable):
    """The connection is unusable: the bridge must connect again."""


class InvalidRecordError(errors.BrokerResponseError):  # type: ignore[misc]  # aiokafka has no type hints
    """A code that aiokafka does not know and would report as an unknown error."""

    errno = 87
    message = "INVALID_RECORD"
    description = "The broker's validation refused the record."


errors.kafka_errors.setdefault(InvalidRecordError.errno, InvalidRecordError)

Failure = Unavailable | Rejected
_Say = Callable[[Exception, str], Failure]


def _unavailable(text: str) -> _Say:
    return lambda _, topic: Unavailable(text.format(topic=topic))


def _rejected(text: str) -> _Say:
    return lambda _, topic: Rejected(text.format(topic=topic))


def _lost(text: str) -> _Say:
    return lambda _, topic: Lost(text.format(topic=topic))


TOO_LARGE = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
)
_TOO_LARGE = _rejected("the record is too large for topic {topic}")
_UNWRITABLE = "the broker does not allow this client to write topic {topic}"
_SILENT = _lost("the broker did not acknowledge in time")

_VERDICTS: dict[type[BaseException], _Say] = {
    # Rejected: the same record would get the same answer.
    **dict.fromkeys(TOO_LARGE, _TOO_LARGE),
    errors.InvalidTopicError: _rejected("the broker says that {topic} is not a topic name"),
    errors.CorruptRecordException: _rejected("the broker said twice that the record is corrupt"),
    InvalidRecordError: _rejected("the broker's validation rejects the record on topic {topic}"),
    errors.InvalidTimestampError: _rejected("topic {topic} does not accept the record's timestamp"),
    # For an operator to fix; until then it waits.
    errors.TopicAuthorizationFailedError: _unavailable(_UNWRITABLE),
    errors.ClusterAuthorizationFailedError: _unavailable(_UNWRITABLE),
    errors.PolicyViolationError: _unavailable("a policy of the broker forbids it on topic {topic}"),
    errors.UnknownTopicOrPartitionError: _unavailable(
        "topic {topic} does not exist, and the broker does not create it"
    ),
    errors.UnsupportedCodecError: _unavailable("this compression is not supported here"),
    errors.UnsupportedForMessageFormatError: _unavailable("topic {topic} does not support headers"),
    # Temporary states of the cluster.
    errors.LeaderNotAvailableError: _unavailable("a partition of topic {topic} has no leader"),
    errors.NotLeaderForPartitionError: _unavailable(
        "the leader of a partition of topic {topic} has moved"
    ),
    errors.NotEnoughReplicasError: _unavailable("topic {topic} has too few in-sync replicas"),
    errors.NotEnoughReplicasAfterAppendError: _unavailable(
        "topic {topic} has too few in-sync replicas"
    ),
    errors.KafkaStorageError: _unavailable("the broker cannot write to its disk"),
    # Errors of the connection.
    errors.NodeNotReadyError: _lost("the broker that leads the partition cannot be reached"),
    errors.KafkaConnectionError: _lost("the connection broke"),
    errors.RequestTimedOutError: _SILENT,
    errors.KafkaTimeoutError: _SILENT,
    TimeoutError: _SILENT,
    # Anything else may pass with a new connection; it keeps aiokafka's name.
    errors.BrokerResponseError: lambda error, _: Unavailable(
        f"the broker answered {type(error).__name__}"
    ),
    errors.KafkaError: lambda error, _: Lost(" ".join(str(error).split())),
    errors.ConsumerStoppedError: _lost("the consumer is stopped"),
    errors.IllegalOperation: lambda error, _: Lost(str(error) or "IllegalOperation"),
}


def verdict(error: Exception, topic: str) -> Failure:
    """What the error of a record means for its CloudEvent."""
    for kind in type(error).__mro__:
        if kind in _VERDICTS:
            return _VERDICTS[kind](error, topic)
    return Lost(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _words(error: BaseException) -> str:
    said = " ".join(str(argument) for argument in error.args if isinstance(argument, str))
    return said or type(error).__name__


def _refused(cause: BaseException) -> str:
    return f"it refuses the login: {_words(cause)}"


CONNECTING = (errors.KafkaError, OSError, EOFError, ValueError, AssertionError)
"""What aiokafka raises when a broker is away, refuses the login or is not a Kafka broker."""
_HUNG_UP = "it closed the connection; perhaps its listener expects other tls or sasl settings"
_CONNECTING: _network.Reasons = {
    Unavailable: lambda cause: f"there is no token: {cause}",
    errors.UnsupportedSaslMechanismError: "it does not support this SASL mechanism",
    errors.SaslAuthenticationFailed: _refused,
    errors.AuthenticationFailedError: _refused,
    errors.IllegalSaslStateError: "it does not expect SASL",
    EOFError: _HUNG_UP,
    ConnectionError: _HUNG_UP,
    errors.KafkaConnectionError: _HUNG_UP,
    UnicodeError: _refused,
    ValueError: _refused,
    AssertionError: _refused,
}


def why_not_connected(error: BaseException, patience: float) -> str:
    """Why a broker cannot be used; the caller puts its address and a colon before it."""
    cause = _root(error)
    if isinstance(cause, TimeoutError):
        return f"no answer within {patience:g} s"
    return _network.why(cause, _CONNECTING)


def _root(error: BaseException) -> BaseException:
    """A KafkaError only says that the connection closed; its cause says why."""
    while isinstance(error, errors.KafkaError) and error.__cause__ is not None:
        error = error.__cause__
    return error


_UNANSWERED = "the broker did not answer in time"
_UNREADABLE = "the broker does not allow this client to read topic {topic}"
_REFUSALS: dict[type[BaseException], str] = {
    errors.TopicAuthorizationFailedError: _UNREADABLE,
    errors.ClusterAuthorizationFailedError: _UNREADABLE,
    errors.UnknownTopicOrPartitionError: "topic {topic} does not exist",
    errors.LeaderNotAvailableError: "a partition of topic {topic} has no leader",
    errors.NodeNotReadyError: "no broker of the cluster can be reached",
    errors.RequestTimedOutError: _UNANSWERED,
    errors.KafkaTimeoutError: _UNANSWERED,
}


def refusal(error: BaseException, topic: str) -> Unavailable:
    """Why nothing can be read now."""
    for kind in type(error).__mro__:
        if kind in _REFUSALS:
            return Unavailable(_REFUSALS[kind].format(topic=topic))
    if isinstance(error, Exception):
        return Unavailable(str(verdict(error, topic)))
    return Unavailable(type(error).__name__)
