"""The status of a bridge's parts, and when the process counts as stuck."""

import pytest

from bridge.runtime.status import BUCKETS, STUCK, Histogram, SinkStatus, SourceStatus, Status, stuck


@pytest.mark.parametrize(
    ("value", "bucket"), [(0.0, 0), (0.1, 0), (0.2, 1), (3600.0, 8), (3601.0, 9)]
)
def test_a_value_is_counted_in_the_first_bucket_that_holds_it(value, bucket):
    histogram = Histogram()
    histogram.observe(value)
    assert histogram.counts == [int(place == bucket) for place in range(len(BUCKETS) + 1)]
    assert histogram.total == value


def test_only_a_stopped_sink_is_resumed():
    sink = SinkStatus("webhook", required=True, state="stopped", error="410 Gone")
    assert sink.resume(12.0)
    assert (sink.state, sink.error, sink.since) == ("untried", None, 12.0)
    assert not sink.resume(13.0)
    assert sink.since == 12.0


def test_outcomes_are_counted_by_their_reason():
    status = Status()
    for reason in ("expired", "expired", "malformed"):
        status.count_approval("refused", reason)
    assert status.approvals == {("refused", "expired"): 2, ("refused", "malformed"): 1}


def test_a_poll_loop_that_has_not_moved_for_too_long_is_stuck():
    status = Status(started=100.0)
    assert stuck(status, 1.0, 100.0 + STUCK + 1.0) is None
    assert stuck(status, 1.0, 100.0 + STUCK + 2.0) == "the poll loop has not moved for 152 s"


def test_the_last_poll_counts_rather_than_the_start():
    status = Status(started=0.0, source=SourceStatus(last_poll=1000.0))
    assert stuck(status, 1.0, 1000.0 + STUCK) is None
    assert stuck(status, 1.0, 1000.0 + STUCK + 10.0) is not None
