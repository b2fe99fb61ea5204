"""Limits that an attacker may try to exceed: what goes in is counted, and so is what is left."""

import json
from typing import Any

import pytest
from support.journal_tools import NOW, about, open_store
from support.world import ME, NOON, OBSERVER, World, as_azure_says, scheduled_event

from bridge.core import messages
from bridge.core.diff import transitions
from bridge.core.envelope import LIMIT
from bridge.core.model import Document
from bridge.journal.cursors import dead_letters, register
from bridge.journal.retention import trim, used
from bridge.journal.store import Settlement
from bridge.metadata.answers import Answer, read_document, received
from bridge.metadata.client import LARGEST_DOCUMENT

EVENT = dict(as_azure_says(scheduled_event()))


def read(events: list[Any]) -> Document:
    """A document as large as one may be."""
    body = json.dumps({"DocumentIncarnation": 1, "Events": events}, separators=(",", ":")).encode()
    assert 0.9 * LARGEST_DOCUMENT < len(body) <= LARGEST_DOCUMENT
    answer = read_document(received(200, body), "2020-07-01")
    assert isinstance(answer, Answer)
    assert answer.document is not None
    return answer.document


def test_an_event_with_as_many_resources_as_fit_is_one_cloudevent_of_limited_size():
    resources = [ME, *(f"vm-{number:07}" for number in range(1_250_000))]
    document = read([{**EVENT, "Resources": resources}])
    step = transitions(World().state, document, World().facts)
    [told] = [messages.transition(one, OBSERVER, NOON, 1) for one in step.transitions]
    assert len(told.body) <= LIMIT
    assert len(told.data["resources"]) + told.data["resourcesTruncated"] == len(resources)
    assert told.data["observer"]["affected"] is True


def test_as_many_events_as_fit_are_all_read_and_each_is_announced_once():
    few = {"EventType": "Reboot", "EventStatus": "Scheduled", "Description": "x" * 900}
    events = [{**few, "EventId": f"{number:012}"} for number in range(16_500)]
    document = read([*events, *events[:10]])
    step = transitions(World().state, document, World(scope="all").facts)
    assert len(step.transitions) == len(step.state.tracked) == len(events)


@pytest.mark.parametrize("letters", [100, 400])
def test_dead_letters_stay_within_the_size_of_the_journal(tmp_path, letters):
    store = open_store(tmp_path / "journal.db")
    register(store, ["sink"], NOW)
    rows = [about(f"K{number}", text="x" * 8000) for number in range(letters)]
    store.append(rows, NOW)
    store.settle("sink", [Settlement(row.id, "dead", "refused") for row in rows], NOW)
    limit = 1 << 20
    trim(store, now=NOW, keep=86400.0, max_size=limit)
    left = [letter.event_id for letter in dead_letters(store)]
    assert used(store.connection) <= limit
    assert 60 <= len(left) <= 130
    assert {row.id for row in rows[-50:]} <= set(left), "the latest stay"
    store.close()
