"""What aiokafka raises, put into our two words and one sentence; the only place that does it."""

from collections.abc import Callable

from aiokafka import errors

from bridge.plugins import Rejected, Unavailable
from sinks import _network


class Lost(Unavailable):
    """The connection is no good: the sink must be entered anew."""


class InvalidRecordError(errors.BrokerResponseError):  # type: ignore[misc]  # aiokafka has no type hints
    """A code that aiokafka does not know, and would take for an unknown error of the broker."""

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
    # Never: the same record would meet the same answer.
    **dict.fromkeys(TOO_LARGE, _TOO_LARGE),
    errors.InvalidTopicError: _rejected("the broker says that {topic} is no name for a topic"),
    errors.CorruptRecordException: _rejected("the broker says twice that the record is corrupt"),
    InvalidRecordError: _rejected("the broker's validation refuses the record on topic {topic}"),
    errors.InvalidTimestampError: _rejected("topic {topic} does not take the record's timestamp"),
    # For somebody to put right; until then it waits.
    errors.TopicAuthorizationFailedError: _unavailable(_UNWRITABLE),
    errors.ClusterAuthorizationFailedError: _unavailable(_UNWRITABLE),
    errors.PolicyViolationError: _unavailable("a policy of the broker forbids it on topic {topic}"),
    errors.UnknownTopicOrPartitionError: _unavailable(
        "topic {topic} does not exist, and the broker does not create it"
    ),
    errors.UnsupportedCodecError: _unavailable("the compression cannot be used here"),
    errors.UnsupportedForMessageFormatError: _unavailable("topic {topic} cannot hold headers"),
    # Of the cluster, and passing.
    errors.LeaderNotAvailableError: _unavailable("a partition of topic {topic} has no leader"),
    errors.NotLeaderForPartitionError: _unavailable(
        "the leader of a partition of topic {topic} has moved"
    ),
    errors.NotEnoughReplicasError: _unavailable("topic {topic} has too few replicas in sync"),
    errors.NotEnoughReplicasAfterAppendError: _unavailable(
        "topic {topic} has too few replicas in sync"
    ),
    errors.KafkaStorageError: _unavailable("the broker cannot write its disk"),
    # Of the connection.
    errors.NodeNotReadyError: _lost("the broker that leads the partition cannot be reached"),
    errors.KafkaConnectionError: _lost("the connection broke"),
    errors.RequestTimedOutError: _SILENT,
    errors.KafkaTimeoutError: _SILENT,
    TimeoutError: _SILENT,
    # All else may pass with a new connection, and is named as aiokafka names it.
    errors.BrokerResponseError: lambda error, _: Unavailable(
        f"the broker answered {type(error).__name__}"
    ),
    errors.KafkaError: lambda error, _: Lost(" ".join(str(error).split())),
    errors.ConsumerStoppedError: _lost("the consumer is stopped"),
    errors.IllegalOperation: lambda error, _: Lost(str(error) or "IllegalOperation"),
}


def verdict(error: Exception, topic: str) -> Failure:
    """What a record's error means for its CloudEvent."""
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
_HUNG_UP = "it hung up, as a listener with other settings for tls and sasl does"
_CONNECTING: _network.Reasons = {
    Unavailable: lambda cause: f"there is no token: {cause}",
    errors.UnsupportedSaslMechanismError: "it does not take this SASL mechanism",
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
    """Why one broker could not be entered, to follow its address and a colon."""
    cause = _root(error)
    if isinstance(cause, TimeoutError):
        return f"no answer within {patience:g} s"
    return _network.why(cause, _CONNECTING)


def _root(error: BaseException) -> BaseException:
    """A KafkaError says that the connection closed; what closed it is the cause."""
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
