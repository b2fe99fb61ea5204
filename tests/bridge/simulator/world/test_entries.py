"""One scheduled event of the simulated world: how it begins and how it is changed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.simulator_tools import START

from bridge.core.model import ScheduledEvent
from bridge.simulator import NewEvent
from bridge.simulator.world.agenda import Agenda
from bridge.simulator.world.building_blocks import Update
from bridge.simulator.world.entries import Entry, changed, first_state

SOON = START + timedelta(minutes=15)


def begun(**plan: Any) -> ScheduledEvent:
    asked = NewEvent.model_validate({"type": "Reboot", **plan})
    return first_state(asked, event_id="A", not_before=SOON, first_vm="vm-0")


def test_an_event_begins_on_the_first_vm_unless_others_are_named():
    assert begun().resources == ("vm-0",)
    assert begun(resources=["a", "b"]).resources == ("a", "b")


def test_an_event_that_begins_as_started_has_no_not_before():
    assert (begun().status, begun().not_before) == ("Scheduled", SOON)
    started = begun(status="Started")
    assert (started.status, started.not_before) == ("Started", None)


@pytest.mark.parametrize(
    ("plan", "description"),
    [
        ({}, "Virtual machine is going to be restarted."),
        (
            {"source": "User"},
            "Virtual machine is going to be restarted as requested by authorized user.",
        ),
        ({"description": "mine"}, "mine"),
    ],
)
def test_a_description_says_who_asked_for_the_event(plan, description):
    assert begun(**plan).description == description


def test_an_event_of_an_unknown_type_has_a_description_too():
    event = begun(type="Teleport", source="User")
    assert event.event_type == "Teleport"
    assert event.description == (
        "Virtual machine is affected by Teleport as requested by authorized user."
    )


def test_the_type_on_the_wire_may_be_unknown():
    assert begun(wire_type="Teleport").event_type == "Teleport"


def test_a_change_leaves_alone_what_it_does_not_name():
    event = begun(description="old", duration=9)
    assert changed(event, Update(event="A")) == event
    update = Update(event="A", type="Redeploy", resources=["b"], description="new")
    assert changed(event, update) == replace(
        event, event_type="Redeploy", resources=("b",), description="new"
    )


def test_an_entry_that_stops_forgets_what_was_to_happen_next():
    plan = NewEvent(type="Reboot")
    entry = Entry("r", 1, plan, begun(), START, SOON, next=Agenda().at(SOON, begun))
    planned = entry.next
    entry.stop()
    assert planned is not None
    assert (planned.canceled, entry.next) == (True, None)
