"""Any CloudEvent that the bridge may write, with awkward values, and the SDK's view of it."""

from datetime import UTC, datetime
from typing import Any

from cloudevents.core.v1.event import CloudEvent as SdkEvent
from hypothesis import strategies as st
from support.messages import TABLE
from support.world import OBSERVER

from bridge.core.cloudevent import CloudEvent
from bridge.core.envelope import Draft, write

_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
_QUOTES = st.sampled_from(
    [', "data": {', '"}, "data": ', "\\ud800", "\ud800", "\U0001f527", "\x00"]
)
_WORDS = _TEXT | _QUOTES
_NUMBERS = st.integers() | st.floats() | st.booleans() | st.none()
_VALUES = st.recursive(
    _WORDS | _NUMBERS | st.datetimes(timezones=st.none() | st.just(UTC)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Of every type, with an EventId or without, and with any data."""
    kind, schema, severity = draw(st.sampled_from(TABLE))
    return Draft(
        kind=kind,
        id=str(draw(st.uuids())),
        time=draw(st.datetimes(timezones=st.just(UTC))),
        schema=schema,
        severity=severity,
        event_id=draw(st.none() | _WORDS),
        data=draw(st.dictionaries(_WORDS, _VALUES, max_size=6)),
        causation=draw(st.none() | _WORDS),
    )


def cloudevents() -> st.SearchStrategy[CloudEvent]:
    return drafts().map(lambda draft: write(draft, OBSERVER))


def as_sdk(cloudevent: CloudEvent, data: dict[str, Any] | None = None) -> SdkEvent:
    """The same CloudEvent as a value of the SDK; *data* instead of its own."""
    envelope = cloudevent.envelope
    own = envelope.pop("data")
    envelope["time"] = datetime.fromisoformat(envelope["time"])
    return SdkEvent(envelope, own if data is None else data)
