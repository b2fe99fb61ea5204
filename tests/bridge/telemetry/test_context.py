import pytest

from bridge.telemetry.context import TraceContext, new_trace, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_context_is_read_as_it_is_written():
    for sampled in (True, False):
        context = TraceContext(TRACE, SPAN, sampled)
        assert read_traceparent(str(context)) == context
    assert str(TraceContext(TRACE, SPAN)) == f"00-{TRACE}-{SPAN}-01"


def test_a_child_is_another_place_in_the_same_trace():
    parent = new_trace()
    child = parent.child()
    assert (child.trace_id, child.sampled) == (parent.trace_id, parent.sampled)
    assert child.span_id != parent.span_id
    assert read_traceparent(str(child)) == child
    assert new_trace().trace_id != parent.trace_id


def test_a_later_version_may_say_more():
    assert read_traceparent(f"01-{TRACE}-{SPAN}-03-more") == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"01-{TRACE}-{SPAN}-01-{'x' * 300}",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_anything_else_is_no_context(text):
    assert read_traceparent(text) is None
