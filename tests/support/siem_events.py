"""CloudEvents with hostile content, as the bridge itself writes them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from hypothesis import strategies as st
from support.world import EVENT_ID, NOON, OBSERVER, published, scheduled_event

from bridge.approvals.outcomes import Cause, Outcome, outcome
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent, TransitionKind
from bridge.core.observer import Observer
from bridge.core.state import Tracked, Transition

PIECES = (
    *("\n", "\r", "\r\n", "|", "=", "^", "\t", "\\", "\\n", "\x00", "\x1b[31m", "\x7f", "\x85"),
    *("\u2028", "\u2029", "\u202eabc\u202c", "\U0001f469\u200d\U0001f692", "e\u0301"),
    *(
        " ",
        ",",
        '"',
        "]",
        "CEF:0|",
        "msg=x cs1=y",
        " cat=a",
        "^sev=10",
        "{}",
        "\xa0",
        "\u3000",
        "+3",
    ),
)
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=10).map("".join)
long_texts = st.builds(lambda piece: piece * (60_000 // len(piece)), texts.filter(bool))
anything = texts | st.sampled_from(["x" * 1024, "\U0001f692" * 300]) | long_texts
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
moments = st.none() | st.sampled_from(
    [NOON, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
scheduled_events = st.builds(
    scheduled_event,
    st.sampled_from([EVENT_ID]) | anything.filter(bool),
    event_type=st.sampled_from(["Reboot", "Freeze", "Terminate", "LiveMigrate"])
    | anything.filter(bool),
    resources=st.lists(texts, max_size=4).map(tuple)
    | st.just(tuple(f"vm-{n}" for n in range(9000))),
    not_before=moments,
    resource_type=st.none() | texts,
    description=st.none() | anything,
    event_source=st.none() | texts,
    duration=st.none() | st.sampled_from([-1, 0, 9, 9.5, 1e300, 10**30]),
    extra=st.dictionaries(texts, values, max_size=3),
)
observers = st.sampled_from([OBSERVER, Observer()]) | st.builds(
    lambda name, label: replace(OBSERVER, vm_name=name, labels={label: name, "a.b": label}),
    texts.filter(bool),
    texts,
)


@st.composite
def hostile(draw: Any) -> CloudEvent:
    """A CloudEvent of any type."""
    tell = draw(st.sampled_from([_transition, _transition, _outcome, _source, _audit]))
    told: CloudEvent = tell(draw, draw(observers))
    return told


def _transition(draw: Any, observer: Observer) -> CloudEvent:
    found = Transition(
        what=draw(st.sampled_from(get_args(TransitionKind))),
        event=draw(scheduled_events),
        life=1,
        affected=draw(st.sampled_from([None, True, False])),
        previous_status=draw(st.sampled_from([None, "Scheduled"])),
        inferred=draw(st.booleans()),
        changes=draw(st.dictionaries(texts, values, max_size=2)),
    )
    incarnation = draw(st.none() | st.integers() | texts)
    return messages.transition(found, observer, NOON + timedelta(milliseconds=123), incarnation)


def _outcome(draw: Any, observer: Observer) -> CloudEvent:
    said = st.none() | anything
    cause = Cause(
        approval=draw(anything.filter(bool)),
        key="k",
        decision=draw(said),
        approver=draw(said),
        via=draw(anything),
        resource=draw(said),
        said=draw(said),
    )
    known = Tracked(draw(scheduled_events)) if draw(st.booleans()) else None
    kind = draw(st.sampled_from(["recorded", "granted", "refused", "failed"]))
    posted = NOON if kind == "granted" else None
    key = known.event.key if known else None
    told = Outcome(kind, key, cause, known, detail=draw(said), reason=draw(said), posted_at=posted)
    return outcome(told, observer, NOON)


def _source(draw: Any, observer: Observer) -> CloudEvent:
    about = messages.SourceReport(
        NOON, draw(st.none() | texts), None, None, "0.1.0", reason=draw(texts)
    )
    events = draw(st.lists(scheduled_events, max_size=3))
    tracked = {each.key: Tracked(each, announced=True) for each in events}
    what = draw(st.sampled_from(get_args(messages.SourceEventKind)))
    return messages.source(what, about, observer, NOON, tracked)


def _audit(draw: Any, observer: Observer) -> CloudEvent:
    detail = draw(st.dictionaries(texts, values, max_size=3))
    words = {"actor": draw(anything), "via": draw(texts), "detail": detail}
    words["address"] = draw(st.none() | texts | st.sampled_from(["192.0.2.7", "2001:db8::7"]))
    return messages.audited(draw(anything), observer, NOON, **words)


def refused_token(address: str | None = "192.0.2.7") -> CloudEvent:
    """The audit of a token that somebody at an address guessed."""
    words: dict[str, Any] = {"actor": "unknown", "via": "http", "detail": {"count": 3}}
    return messages.audited("token.refused", OBSERVER, NOON, address=address, **words)


def of_kind(name: str, *without: str, **data: Any) -> CloudEvent:
    """The usual CloudEvent of that kind, with other data in it and some of it left out."""
    usual = published()[f"azure.scheduledevents.{name}.v1"]
    envelope = usual.envelope
    changed = {**envelope["data"], **data}
    envelope["data"] = {key: value for key, value in changed.items() if key not in without}
    return replace(usual, body=json.dumps(envelope, ensure_ascii=False).encode())


def bare(name: str) -> CloudEvent:
    """The CloudEvent of that kind with nothing in its data."""
    every = published()[f"azure.scheduledevents.{name}.v1"].data
    return of_kind(name, *every)
