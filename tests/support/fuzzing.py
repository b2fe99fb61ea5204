"""How long a fuzz target runs: a moment in `make test`, and its share of MINUTES in `make fuzz`.

Hypothesis has no limit in time, only in examples. So a target runs again and again, each time with
new examples, until its share is used.
"""

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

MINUTES = float(os.environ.get("FUZZ_MINUTES") or 0)
"""For all targets together; 0 runs each of them once."""
_share = 0.0


def load_profile() -> None:
    """On a busy machine any example may take long. That says nothing about the code."""
    slow = [HealthCheck.too_slow]
    settings.register_profile("busy", deadline=None, suppress_health_check=slow)
    settings.register_profile("fuzz", settings.get_profile("busy"), derandomize=False)
    settings.load_profile("fuzz" if MINUTES else "busy")


def divide(items: Sequence[Any], workers: int) -> None:
    """Give each of these tests an equal share of the time, and repeat those that are properties.

    A target with a property inside calls `again` itself.
    """
    global _share  # noqa: PLW0603  one run has one share
    _share = MINUTES * 60 * workers / max(1, len(items))
    for item in items:
        if hasattr(item.obj, "hypothesis"):
            item.obj = _repeated(item.obj)


def again(run: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Run it once, and then until its share of the time is used."""
    end = time.monotonic() + _share
    run(*given, **named)
    while time.monotonic() < end:
        run(*given, **named)


def _repeated(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    def repeat(*given: Any, **named: Any) -> None:
        again(test, *given, **named)

    return repeat


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes], most: int = 3) -> bytes:
    """Some of *whole*: bytes changed, parts cut, repeated or replaced, or as it was."""
    body = draw(whole)
    for _ in range(draw(st.integers(0, most))):
        at = draw(st.integers(0, len(body)))
        end = draw(st.integers(at, min(len(body), at + 40)))
        new = draw(st.binary(max_size=8) | st.just(body[at:end] * 2) | st.sampled_from(_PIECES))
        body = body[:at] + new + body[end:]
    return body[: draw(st.integers(0, len(body)))] if draw(st.integers(0, 9)) == 0 else body


_PIECES = [
    *(b"null", b"{}", b"[]", b'""', b"1e999", b"-1", b"NaN", b"true", b"\\ud800", b"\x00", b"\xff"),
    *(b"{" * 200, b"[" * 200, b"9" * 5000, b"\r\n", b"\n\t", b": ", b"- ", b"&a ", b"*a", b"${", b"!!"),
]  # fmt: skip
