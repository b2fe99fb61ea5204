from bridge.telemetry.context import TraceContext, new_trace
from bridge.telemetry.tracing import MOST, MOST_VOTES, Span, Tracing, below


def span(context: TraceContext | None = None) -> Span:
    return Span("poll", "client", context or new_trace(), None, 1.0, 2.0, {})


def test_what_is_off_keeps_nothing():
    tracing = Tracing()
    tracing.add(span())
    assert not tracing.waiting
    tracing.remember_vote("a", new_trace())
    assert tracing.vote("a") is None


def test_a_full_queue_drops_and_counts():
    tracing = Tracing(on=True)
    for _ in range(MOST + 3):
        tracing.add(span())
    assert (len(tracing.waiting), tracing.dropped) == (MOST, 3)
    assert tracing.news.is_set()


def test_what_its_sender_did_not_sample_is_not_exported():
    tracing = Tracing(on=True)
    tracing.add(span(new_trace()._replace(sampled=False)))
    assert (len(tracing.waiting), tracing.dropped) == (0, 0)


def test_the_traces_of_few_votes_are_remembered_and_the_oldest_goes_first():
    tracing, contexts = Tracing(on=True), [new_trace() for _ in range(MOST_VOTES + 1)]
    for number, context in enumerate(contexts):
        tracing.remember_vote(str(number), context)
    assert tracing.vote("0") is None
    assert tracing.vote(None, "0", "1") == contexts[1]


def test_switched_off_it_forgets():
    tracing = Tracing(on=True)
    tracing.add(span())
    tracing.remember_vote("a", new_trace())
    tracing.switch(on=False)
    tracing.switch(on=True)
    assert not tracing.waiting
    assert tracing.vote("a") is None


def test_below_nothing_is_a_new_trace():
    parent = new_trace()
    assert below(parent).trace_id == parent.trace_id
    assert below(None).trace_id != parent.trace_id
