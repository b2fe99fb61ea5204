"""The observer, and how it is described."""

import re
from dataclasses import replace
from typing import Any

import pytest
from support.messages import check, told, transition_of
from support.world import INSTANCE, ME, OBSERVER

from bridge.core.observer import Observer


def test_the_observer_is_described_by_what_its_operator_asked_for():
    described = told(transition_of("scheduled")).data["observer"]

    assert described["tags"] == {"team": "orders"}
    assert described["labels"] == {"site": "plant-7"}
    assert (described["vm"], described["affected"]) == (ME, True)


def test_an_observer_without_any_metadata_still_publishes():
    made = told(transition_of("scheduled"), Observer())
    data = check(made)

    assert made.attributes["source"] == "/azure/scheduledevents"
    assert made.attributes["observer"] == "unknown"
    assert data["observer"]["vm"] is None


@pytest.mark.parametrize("missing", ["subscription", "resource_group"])
def test_an_incomplete_source_is_not_used(missing: str):
    lacking: dict[str, Any] = {missing: None}
    observer = Observer(replace(INSTANCE, **lacking))

    assert observer.events_source() == "/azure/scheduledevents"


def test_the_configuration_takes_precedence_over_instance_metadata():
    observer = replace(OBSERVER, vm_name="renamed", source="https://shop.example/a?b")
    made = told(transition_of("scheduled"), observer)

    assert made.data["observer"]["vm"] == made.attributes["observer"] == "renamed"
    assert re.fullmatch("https://shop.example/a_b~[0-9a-f]{8}", made.attributes["source"])
