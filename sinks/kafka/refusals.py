"""What aiokafka raises at somebody who reads, put into one sentence."""

from aiokafka import errors

from bridge.plugins import Unavailable
from sinks.kafka.errors import verdict

_SILENT = "the broker did not answer in time"
_FORBIDDEN = "the broker does not allow this client to read topic {topic}"
_REFUSALS: dict[type[BaseException], str] = {
    errors.TopicAuthorizationFailedError: _FORBIDDEN,
    errors.ClusterAuthorizationFailedError: _FORBIDDEN,
    errors.GroupAuthorizationFailedError: "the broker does not allow this client its group",
    errors.UnknownTopicOrPartitionError: "topic {topic} does not exist",
    errors.LeaderNotAvailableError: "a partition of topic {topic} has no leader",
    errors.NodeNotReadyError: "no broker of the cluster can be reached",
    errors.RequestTimedOutError: _SILENT,
    errors.KafkaTimeoutError: _SILENT,
}


def refusal(error: BaseException, topic: str) -> Unavailable:
    """Why nothing can be read now."""
    for kind in type(error).__mro__:
        if kind in _REFUSALS:
            return Unavailable(_REFUSALS[kind].format(topic=topic))
    if isinstance(error, Exception):
        return Unavailable(str(verdict(error, topic)))
    return Unavailable(type(error).__name__)
