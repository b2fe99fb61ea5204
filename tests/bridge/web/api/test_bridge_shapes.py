"""The JSON objects about the bridge itself."""

from datetime import UTC, datetime

import pytest

from bridge.config import Config, SourceSettings
from bridge.runtime.status import ListenerStatus, SourceStatus
from bridge.web.api import bridge_shapes as shapes

GOOD = {"good_at": 100.0, "last_good": datetime(2026, 11, 15, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ({}, "waiting"),
        ({"problem": "timeout"}, "failing"),
        (GOOD, "good"),
        ({**GOOD, "problem": "timeout"}, "failing"),
        ({**GOOD, "problem": "timeout", "degraded": True}, "degraded"),
    ],
)
def test_the_source_has_one_of_four_states(seen, state):
    found = shapes.source(SourceStatus(**seen), SourceSettings(), 103.25)
    assert found["state"] == state
    assert found["lastGoodAgeSeconds"] == (3.25 if "good_at" in seen else None)


def test_an_approval_source_that_says_nothing_for_long_is_silent():
    heard = {"a": ListenerStatus("kafka", heard=10.0), "b": ListenerStatus("mqtt")}
    first, second = shapes.approval_sources(heard, 131.0)
    assert (first["silent"], first["heardSecondsAgo"]) == (True, 121.0)
    assert (second["silent"], second["heardSecondsAgo"]) == (False, None)


@pytest.mark.parametrize(
    ("tokens", "votes"),
    [([], False), ([{"token": "a", "scopes": ["read"]}], False), (["a"], True)],
)
def test_votes_need_a_token_that_may_approve(tokens, votes):
    config = Config.model_validate({"http": {"tokens": tokens}})
    assert shapes.access(config)["votes"] is votes
