"""The result of a run: from its exit code, or from the error that kept it from starting."""

import signal
from collections.abc import Sequence

from bridge.plugins import Delivered, Rejected, Result, Unavailable, write_duration
from sinks.command.process import KEPT, Ended
from sinks.command.settings import CommandSettings

_LATER = 75
"""EX_TEMPFAIL of sysexits.h."""


def judge(ended: Ended, settings: CommandSettings, hidden: Sequence[str] = ()) -> Result:
    """What an exit code means, with the end of the output, in which *hidden* is masked."""
    output = _without(hidden, ended).strip()
    said = f": {output}" if output else ""
    code, approves = ended.code, settings.then == "approve"
    if code == 0:
        return Delivered(output or None, approves) if output or approves else None
    if code is None:
        limit = write_duration(settings.timeout)
        return Unavailable(f"it ran for longer than {limit} and was stopped{said}")
    if code < 0:
        return Unavailable(f"it was ended by {_signal(-code)}{said}")
    if code == _LATER:
        return Unavailable(f"it asks to be run again later (exit code {_LATER}){said}")
    return Rejected(f"exit code {code}{said}")


def not_started(error: OSError, program: str) -> Unavailable:
    """Why the system cannot run *program*."""
    return Unavailable(f"{program} cannot be run: {error.strerror or error}")


def _without(hidden: Sequence[str], ended: Ended) -> str:
    output = ended.output.decode("utf-8", "replace")
    for text in sorted(hidden, key=len, reverse=True):
        output = output.replace(text, "***")
    if len(ended.output) < KEPT:
        return output
    # What is kept may begin in the middle of a secret.
    ends = (text[-size:] for text in hidden for size in range(2, min(len(text), KEPT)))
    half = max((end for end in ends if output.startswith(end)), key=len, default="")
    return f"***{output[len(half) :]}" if half else output


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
