"""Where a Kafka consumer goes on reading."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from sinks.kafka.consumer import remembered, skip_to


def test_only_valid_offsets_of_this_topic_are_used():
    kept = {"a/0": "7", "a/11": "0", "b/0": "9", "a/x": "1", "a/2": "", "a/3": "-1", "a": "4"}
    assert remembered(kept, "a") == {0: 7, 11: 0}


def built(base: int, *values: bytes, codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=100_000,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=0, key=None, value=value, headers=[])
    return base.to_bytes(8) + bytes(builder.build())[8:]


def test_only_a_batch_that_cannot_be_decoded_is_skipped():
    good, bad = built(0, b"a", b"b"), bytearray(built(2, b"c", b"d", b"e"))
    bad[-1] ^= 1
    after = built(5, b"f")
    assert skip_to(good + after, 0) == 0
    assert skip_to(good + bytes(bad) + after, 0) == 5
    assert skip_to(bytes(bad) + after, 4) == 5
    assert skip_to(bytes(bad) + after, 5) == 0


@pytest.mark.parametrize("end", [0, 5, 30, -1])
def test_a_batch_that_is_cut_off_is_not_taken_for_unreadable(end: int):
    assert skip_to(built(0, b"a")[:end], 0) == 0
