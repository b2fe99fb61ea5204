"""Where a Kafka consumer goes on reading."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from sinks.kafka.consumer import Progress, remembered, skip_to


def test_only_valid_offsets_of_this_topic_are_used():
    kept = {"c/a/0": "7@9", "c/a/11": "0", "c/b/0": "9", "c/a/x": "1", "c/a/2": "", "c/a/3": "-1"}
    kept |= {"c/a/4": "5@", "c/a/5": "5@x", "c/a/6": "@5", "a": "4"}
    assert remembered(kept, "c", "a") == {0: Progress(7, 9), 11: Progress(0), 4: Progress(5)}


def test_offsets_of_another_cluster_are_not_used():
    assert remembered({"c/a/0": "7@9"}, "d", "a") == {}


def test_offsets_of_the_release_before_count_until_another_cluster_is_known():
    before = {"a/0": "7", "a/1": "8"}
    assert remembered(before, "c", "a") == {0: Progress(7), 1: Progress(8)}
    after = {**before, "c/a/0": "9@1"}
    assert remembered(after, "c", "a") == {0: Progress(9, 1), 1: Progress(8)}
    assert remembered(after, "d", "a") == {}


@pytest.mark.parametrize("progress", [Progress(0), Progress(7), Progress(7, 0), Progress(7, 9)])
def test_progress_is_read_as_it_was_written(progress):
    assert Progress.parse(str(progress)) == progress


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
