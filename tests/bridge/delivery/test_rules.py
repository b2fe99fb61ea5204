from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cloudevents import make
from support.world import NOON, OBSERVER, published

from bridge.core.messages import transition
from bridge.core.model import ScheduledEvent, parse_time
from bridge.core.state import Transition
from bridge.delivery.rules import (
    asked_wait,
    attempt_timeout,
    checked,
    longest_backoff,
    longest_wait,
    may_approve,
    notice_left,
    planned_start,
    shortest_notice,
    wanted,
)
from bridge.plugins import Only, Rejected, Unavailable

PREFIX = "azure.scheduledevents."
ALL = {kind.removeprefix(PREFIX).removesuffix(".v1"): event for kind, event in published().items()}
TRANSITIONS = {"scheduled", "updated", "started", "completed", "canceled"}


def passing(**only) -> set[str]:
    return {kind for kind, event in ALL.items() if wanted(event, Only(**only))}


def test_without_filters_everything_passes():
    assert passing() == set(ALL)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        ([f"{PREFIX}*"], set(ALL)),
        ([f"{PREFIX}source.*"], {"source.degraded", "source.recovered", "source.snapshot"}),
        ([f"{PREFIX}s*ed.v1"], {"scheduled", "started", "source.degraded", "source.recovered"}),
        ([f"{PREFIX}started.v1", f"{PREFIX}completed.v1"], {"started", "completed"}),
        ([f"{PREFIX}STARTED.v1"], set()),
        ([], set()),
    ],
    ids=["all", "source", "part", "two", "case", "none"],
)
def test_types_are_globs_over_the_whole_type(globs, expected):
    assert passing(types=globs) == expected


def test_event_types_filter_only_transitions():
    others = set(ALL) - TRANSITIONS
    assert passing(event_types=["Freeze"]) == others
    assert passing(event_types=["Re*"]) == set(ALL)
    assert passing(event_types=[]) == others


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b'{"data": {}}', b'{"data": []}'])
def test_a_transition_that_the_disk_damaged_passes_the_filters(body):
    assert wanted(replace(ALL["scheduled"], body=body), Only(event_types=["Freeze"]))


@pytest.mark.parametrize("due", [b"soon", b"\xff", b"2026-99-15T18:29:47Z", b"0001-01-01T00:00:00"])
def test_a_start_that_the_disk_damaged_is_none(due):
    body = b'{"data": {"status": "Scheduled", "notBefore": "%b"}}' % due
    assert planned_start(replace(ALL["scheduled"], body=body)) is None


def test_both_filters_must_match():
    both = {"types": [f"{PREFIX}started.v1", f"{PREFIX}source.*"], "event_types": ["Freeze"]}
    assert passing(**both) == {"source.degraded", "source.recovered", "source.snapshot"}


def test_transitions_are_what_happens_to_a_scheduled_event():
    assert {kind for kind, event in ALL.items() if event.is_transition} == TRANSITIONS


DUE = "2026-11-15T18:29:47Z"
DUE_AT = 1794767387.0


def test_notice_is_the_time_until_azure_starts_the_event():
    event = make(notBefore=DUE)
    assert notice_left(planned_start(event), DUE_AT - 30) == 30
    assert notice_left(planned_start(event), DUE_AT - 0.5) == 0.5


@pytest.mark.parametrize(
    "data",
    [{"status": "Started"}, {"status": "Completed"}, {"notBefore": None}],
    ids=["started", "completed", "never"],
)
def test_the_caller_does_not_wait_for_what_is_not_due(data):
    assert notice_left(planned_start(make(**{"notBefore": DUE, **data})), DUE_AT - 30) is None


def test_notice_is_none_after_its_end():
    assert notice_left(planned_start(make(notBefore=DUE)), DUE_AT) is None
    assert notice_left(planned_start(make(notBefore=DUE)), DUE_AT + 1) is None


def test_only_transitions_have_a_notice():
    assert notice_left(planned_start(ALL["source.snapshot"]), 0) is None


HOSTILE = ('", "notBefore": "1999-01-01T00:00:00Z"', '{"status": "Started"}', "\\", '\\", "status"')


@given(
    st.sampled_from(["scheduled", "updated", "started", "completed", "canceled"]),
    st.sampled_from([DUE, None]),
    st.text() | st.sampled_from(HOSTILE),
    st.dictionaries(st.text() | st.sampled_from(["notBefore", "status"]), st.text(), max_size=3),
)
def test_no_text_of_azure_is_taken_for_the_start(kind, due, text, extra):
    event = ScheduledEvent("A", text or "?", "Scheduled", (text, "vm"), parse_time(due), text, text)
    changes = {"notBefore": {"from": "1999-01-01T00:00:00Z", "to": text}, "description": text}
    happened = Transition(kind, replace(event, extra=extra), 1, affected=True, changes=changes)
    found = planned_start(transition(happened, OBSERVER, NOON, 1))
    assert found == (DUE_AT if due and kind in {"scheduled", "updated"} else None)


@given(st.floats(0.01, 600), st.none() | st.floats(0, 1e6))
def test_an_attempt_leaves_time_for_another_and_never_exceeds_what_is_configured(most, notice):
    limit = attempt_timeout(most, notice)
    assert 0 < limit <= most
    if notice is None:
        assert limit == most
    elif notice >= 3:
        assert limit <= notice / 3 + 1e-9
    assert limit >= min(most, 1.0)


@given(st.floats(0, 1e6))
def test_notice_limits_a_wait_to_a_third_of_it_and_a_backoff_to_a_tenth(notice):
    assert longest_wait(notice) == max(1.0, notice / 3)
    assert longest_backoff(notice) == min(30.0, notice / 10)


def test_without_notice_a_receiver_may_ask_for_any_wait():
    assert longest_wait(None) == float("inf")
    assert longest_backoff(None) == 30.0


@pytest.mark.parametrize(
    ("retry_after", "expected"), [(None, 0), (0, 0), (-5, 0), (7.5, 7.5), (1e9, 3600)]
)
def test_a_requested_wait_is_limited(retry_after, expected):
    assert asked_wait(Unavailable("later", retry_after=retry_after)) == expected


def test_results_are_taken_if_there_is_one_for_each():
    results = (None, Unavailable("a"), Rejected("b"))
    assert checked(results, 3) == list(results)
    assert checked([], 0) == []


@pytest.mark.parametrize(
    "results", [None, 3, [], [None, None], {None: 1}, [True], ["ok"], [ValueError()]], ids=repr
)
def test_anything_else_is_an_invalid_result(results):
    with pytest.raises(Unavailable, match="returned"):
        checked(results, 1)


def test_the_shortest_notice_of_a_batch_counts_and_what_has_none_does_not():
    now = 1_794_767_000.0
    far, near = make(1, notBefore="2026-11-15T18:30:00Z"), make(2, notBefore="2026-11-15T18:25:00Z")
    assert shortest_notice([], now) is None
    assert shortest_notice([ALL["source.snapshot"]], now) is None
    least = shortest_notice([far, ALL["source.snapshot"], near], now)
    farther = notice_left(planned_start(far), now)
    assert farther is not None
    assert least == notice_left(planned_start(near), now)
    assert least is not None
    assert least < farther


def test_this_vm_may_vote_on_announced_approvable_events_that_name_it():
    assert {kind for kind, event in ALL.items() if may_approve(event)} == {"scheduled", "updated"}
    assert may_approve(make())
    assert not may_approve(make(approvable=False))
    assert not may_approve(make(status="Started"))
    for affected in (False, None):
        assert not may_approve(make(observer={"affected": affected}))
