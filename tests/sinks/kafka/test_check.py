"""What the check makes of a broker's description of a topic."""

import pytest
from aiokafka import errors

from bridge.plugins import Unavailable
from sinks.kafka.check import _found

PARTITIONS: list[tuple[int, int, int, list[int], list[int], list[int]]] = [
    (0, 0, 2, [2], [2], []),
    (0, 1, 3, [3], [3], []),
]


def test_the_leaders_of_a_topic_are_found():
    assert _found(0, "news", False, PARTITIONS).leaders == {2, 3}


@pytest.mark.parametrize(
    ("code", "partitions", "said"),
    [
        (
            errors.UnknownTopicOrPartitionError.errno,
            [],
            "topic news does not exist.*otherwise create it",
        ),
        (errors.TopicAuthorizationFailedError.errno, [], "does not allow this client to write"),
        (0, [(0, 0, -1, [2], [2], [])], "partition 0 of topic news has no leader"),
    ],
)
def test_a_topic_that_cannot_be_used_is_named(code, partitions, said):
    with pytest.raises(Unavailable, match=said):
        _found(code, "news", False, partitions)
