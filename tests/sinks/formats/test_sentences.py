"""A rehearsal in words for people: the first word says that it is one."""

import json
import re

import pytest
from support.world import ME, NOON, OBSERVER, SECOND

from bridge.core import messages
from bridge.drills.plan import Plan, made_up
from bridge.plugins import read_format
from bridge.plugins.formats import find_format
from bridge.policy.drill import Drill, DrillVotes, advance, announced, tracked

OPTIONS = {"pagerduty": {"type": "pagerduty", "routing_key": "k" * 32}}


def told():
    """Announced and started, as the bridge publishes it."""
    event = made_up(Plan.model_validate({"eventType": "Terminate"}), "0C", (ME,), NOON)
    drill = Drill(tracked(event, ME, NOON), "ops", "http", NOON, NOON + SECOND)
    begun = advance(drill, DrillVotes("any", satisfied=True, dry_run=False), NOON)
    return [messages.transition(announced(one), OBSERVER, NOON, None) for one in (drill, begun)]


def texts(value) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("name", ["slack", "teams", "pagerduty"])
def test_a_drill_begins_with_the_word(name):
    words = find_format(name).open(read_format(OPTIONS.get(name, name)))
    bodies = [body for body in map(words.encode, told()) if body is not None]
    assert bodies
    for body in bodies:
        said = texts(json.loads(body))
        assert any(re.match(r"\W*DRILL: ", text) for text in said), said
        assert any("This is a drill, of which Azure knows nothing." in text for text in said)
