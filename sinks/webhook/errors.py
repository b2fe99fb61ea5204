"""Why a request to a receiver had no answer, with what a receiver of CloudEvents may have meant."""

from bridge.plugins import Unavailable
from sinks import _http


def unavailable(error: BaseException, where: str, *, anonymous: bool = False) -> Unavailable:
    """Why a request had no answer; *where* is the receiver.

    With TLS 1.3 one that misses a client certificate may hang up without a word, so an *anonymous*
    client is told of that possibility.
    """
    why = _http.why(error)
    if anonymous and why in {_http.BROKEN, _http.HUNG_UP}:
        why += "; does it want a client certificate?"
    return Unavailable(f"{where}: {why}")
