"""What the errors of plugins contain."""

from bridge.plugins import Unavailable


def test_unavailable_may_say_when_to_retry():
    assert Unavailable("busy").retry_after is None
    assert Unavailable("busy", retry_after=3.0).retry_after == 3.0
    assert str(Unavailable("busy")) == "busy"
