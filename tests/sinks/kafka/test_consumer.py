"""Where a Kafka consumer goes on reading."""

from sinks.kafka.consumer import remembered


def test_places_are_those_of_this_topic_and_what_is_no_offset_is_left_out():
    kept = {"a/0": "7", "a/11": "0", "b/0": "9", "a/x": "1", "a/2": "", "a/3": "-1", "a": "4"}
    assert remembered(kept, "a") == {0: 7, 11: 0}
