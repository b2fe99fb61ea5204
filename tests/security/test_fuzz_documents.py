"""Whatever the metadata service answers is a problem, or goes out in every format."""

import json
from datetime import timedelta

import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from support.any_message import cloudevents
from support.fuzzing import damaged
from support.world import (
    EVENT_ID,
    ME,
    NOON,
    OBSERVER,
    OTHER,
    World,
    as_azure_says,
    published,
    scheduled_event,
)

from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import transitions
from bridge.core.envelope import LIMIT
from bridge.metadata.answers import REASONS, SourceProblem, read_document, received
from bridge.plugins.formats import find_format, installed_formats, read_format

VERSIONS = ("2017-03-01", "2017-08-01", "2019-08-01", "2020-07-01")
KEYS = {
    "pagerduty": {"routing_key": "k" * 32},
    "template": {"template": '{"id": "{{ id }}", "said": "{{ headline }}"}'},
}
FORMATS = {
    name: find_format(name).open(read_format({"type": name, **KEYS.get(name, {})}))
    for name in sorted(installed_formats())
}
WHOLE = dict(as_azure_says(scheduled_event()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
WORDS = st.sampled_from(
    [EVENT_ID, EVENT_ID.lower(), "Scheduled", "Started", "Reboot", "Freeze", ME, OTHER, "", "x" * 70_000,
     "Mon, 19 Sep 2016 18:29:47 GMT", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]
)  # fmt: skip
EVENTS = st.dictionaries(
    st.sampled_from(sorted(WHOLE)) | st.text(max_size=5),
    VALUES | WORDS | st.lists(WORDS, max_size=3),
    max_size=4,
).map(lambda changes: {**WHOLE, **changes})
DOCUMENTS = st.fixed_dictionaries(
    {"DocumentIncarnation": st.integers(0, 9) | VALUES, "Events": st.lists(EVENTS, max_size=3)}
).map(lambda value: json.dumps(value).encode())


def check(cloudevent: CloudEvent) -> None:
    """It can be read by others, and every format can express it."""
    assert len(cloudevent.body) <= LIMIT
    assert JSONFormat().read(None, cloudevent.body).get_id() == cloudevent.id
    for name, form in FORMATS.items():
        if form.wants(cloudevent):
            (encoded,) = form.encode_each([cloudevent])
            assert isinstance(encoded, bytes), (name, encoded)
            assert encoded.startswith(form.begins), name


@pytest.mark.fuzz
@settings(max_examples=40)
@given(st.lists(damaged(DOCUMENTS), min_size=1, max_size=3), st.sampled_from(VERSIONS))
def test_whatever_azure_answers_is_a_problem_or_is_published_in_every_format(bodies, version):
    world, now = World(), NOON
    for body in bodies:
        now += timedelta(minutes=9)
        answer = read_document(received(200, body), version)
        if isinstance(answer, SourceProblem):
            assert answer.reason in REASONS
            continue
        if answer.document is None:
            assert answer.empty
            continue
        step = transitions(world.state, answer.document, world.facts._replace(now=now))
        world.state = step.state
        world.restart()
        for transition in step.transitions:
            check(messages.transition(transition, OBSERVER, now, answer.document.incarnation))


@pytest.mark.fuzz
@settings(max_examples=40)
@given(cloudevents())
def test_any_cloudevent_goes_out_in_every_format(cloudevent):
    check(cloudevent)


def test_every_format_is_among_those_that_are_tried():
    assert len(FORMATS) == len(installed_formats()) >= 11
    for cloudevent in published().values():
        check(cloudevent)
