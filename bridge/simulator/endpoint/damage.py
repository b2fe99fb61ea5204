"""What each kind of fault does to an answer."""

from dataclasses import replace

from bridge.simulator.endpoint.wire import WireResponse, as_json, error
from bridge.simulator.world.faults import Fault

_PORTAL = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"
_STATUS = {"status": 503, "throttle": 429, "unauthorized": 401, "forbidden": 403}
_WORDS = {
    "status": "Simulated failure",
    "throttle": "Too many requests",
    "unauthorized": "Simulated: the caller is not authenticated",
    "forbidden": "Simulated: the caller is not on the allow-list of the metadata service",
}
OF_THE_REAL_ANSWER = ("truncated", "oversized")
"""Kinds that change the real answer, and so need it."""


def spoil(fault: Fault, answer: WireResponse) -> WireResponse:
    """The answer as the client gets it."""
    if fault.kind in _STATUS:
        refusal = error(fault.status or _STATUS[fault.kind], _WORDS[fault.kind])
        wait = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        return replace(refusal, headers=wait)
    if fault.kind == "truncated":
        return _truncated(answer)
    if fault.kind == "oversized":
        return replace(answer, body=answer.body.ljust(fault.size))
    return {
        "not-modified": WireResponse(304),
        "redirect": WireResponse(fault.status or 302, headers={"Location": fault.location}),
        "empty": WireResponse(),
        "garbage": WireResponse(body=_PORTAL, content_type="text/html"),
        "wrong-shape": as_json({"DocumentIncarnation": 1, "Events": {"EventId": "none"}}),
        "reset": WireResponse(reset=True),
    }.get(fault.kind, answer)


def _truncated(answer: WireResponse) -> WireResponse:
    half = len(answer.body) // 2
    return replace(answer, body=answer.body[:half], missing=max(len(answer.body) - half, 1))
