"""The judge accepts a ledger in which everything is right, and finds each way to doctor it."""

from dataclasses import replace
from typing import Any

import pytest
from soak.doctored import EVENT, LATER, VM, delivered, fault, ledger, row, said
from soak.judge import RULES
from soak.ledger import Delivery, Ledger, Look, loads


def test_a_ledger_in_which_everything_is_right_is_accepted():
    assert said(ledger()) == []


def test_a_ledger_survives_being_written_to_a_file():
    assert loads(ledger().dumps()) == ledger()


# --- deliveries ----------------------------------------------------------------------------------


def at_sink(doctored: Ledger, sink: str, kind: str) -> Delivery:
    name = next(each.id for each in doctored.rows if each.kind == kind)
    return next(d for d in doctored.deliveries if (d.sink, d.id) == (sink, name))


@pytest.mark.parametrize("sink", ["bus", "floor", "hook", "siem", "archive"])
def test_a_lost_cloudevent_is_found_at_every_sink(sink: str):
    doctored = ledger()
    doctored.deliveries.remove(at_sink(doctored, sink, "started"))
    assert said(doctored) == [f"started of {EVENT} from {VM} never came to {sink}"]


def test_what_was_lost_with_a_journal_that_the_soak_tore_is_excused():
    doctored = ledger()
    gone = at_sink(doctored, "bus", "started")
    doctored.deliveries.remove(gone)
    doctored.excused.append([VM, gone.id])
    assert said(doctored) == []


def test_a_filtered_sink_is_owed_only_what_its_filter_lets_through():
    doctored = ledger()
    doctored.sinks["drain"] = {**doctored.sinks["drain"], "event_types": ["Reboot"]}
    found = said(doctored)
    assert [text.split(" of ")[0] for text in found] == ["scheduled", "updated"]
    assert all(text.endswith("never came to drain") for text in found)


@pytest.mark.parametrize("sink", ["bus", "archive"])
def test_changed_bytes_are_found(sink: str):
    doctored = ledger()
    place = doctored.deliveries.index(at_sink(doctored, sink, "updated"))
    doctored.deliveries[place] = replace(doctored.deliveries[place], digest="other")
    assert len(said(doctored)) == 1
    assert f"{sink} got other bytes for updated" in said(doctored)[0]


def test_what_was_never_issued_is_found():
    doctored = ledger()
    doctored.deliveries.append(Delivery("bus", VM, "invented", 12.0, "d"))
    assert said(doctored) == [f"bus got invented, which {VM} never issued"]


def test_another_order_is_found():
    doctored = ledger()
    one = doctored.deliveries.index(at_sink(doctored, "siem", "updated"))
    two = doctored.deliveries.index(at_sink(doctored, "siem", "started"))
    found = doctored.deliveries
    found[one], found[two] = found[two], found[one]
    assert len(said(doctored)) == 1
    assert f"siem got {EVENT} from {VM} out of order" in said(doctored)[0]


def test_a_duplicate_without_a_cause_is_found():
    doctored = ledger()
    doctored.deliveries.append(replace(at_sink(doctored, "hook", "started"), at=33.0))
    assert len(said(doctored)) == 1
    assert "hook got" in said(doctored)[0]
    assert "again, 3.0 s after the first" in said(doctored)[0]


@pytest.mark.parametrize(
    ("kind", "target", "explains"),
    [
        ("kill", VM, True),
        ("kill", "vm-1", False),
        ("reset-connections", "webhook", True),
        ("reset-connections", "kafka", False),
        ("bad-reload", VM, False),
    ],
)
def test_a_duplicate_is_explained_by_a_fault_of_its_bridge_or_its_sink(
    kind: str, target: str, explains: bool
):
    doctored = ledger()
    doctored.deliveries.append(replace(at_sink(doctored, "hook", "started"), at=33.0))
    doctored.faults.append(fault(kind, target, 30.5, 32.0))
    assert (said(doctored) == []) is explains


@pytest.mark.parametrize(
    ("kind", "target", "begun"), [("kill", VM, 28.5), ("cut-network", "webhook", 20.0)]
)
def test_a_fault_that_was_over_before_explains_nothing(kind: str, target: str, begun: float):
    doctored = ledger()
    doctored.deliveries.append(replace(at_sink(doctored, "hook", "started"), at=33.0))
    doctored.faults.append(fault(kind, target, begun, begun + 0.5))
    assert len(said(doctored)) == 1


def test_an_id_that_does_not_follow_the_recipe_is_found():
    doctored = ledger()
    doctored.rows.append(row(9, "canceled", id="made-up"))
    doctored.deliveries += [delivered(doctored.rows[-1], sink, 45.0) for sink in doctored.sinks]
    assert any("should be" in text and "made-up" in text for text in said(doctored))


# --- the truth -----------------------------------------------------------------------------------


def without(doctored: Ledger, kind: str) -> Ledger:
    """As if the bridge had never told it."""
    gone = next(each for each in doctored.rows if each.kind == kind)
    doctored.rows.remove(gone)
    doctored.deliveries = [each for each in doctored.deliveries if each.id != gone.id]
    return doctored


def test_a_state_that_a_bridge_saw_and_did_not_tell_is_found():
    assert said(without(ledger(), "updated")) == [
        f"{VM} saw {EVENT} as Scheduled and did not tell it"
    ]


@pytest.mark.parametrize(
    "change", [{"clean": False}, {"process": 2}], ids=["a damaged answer", "a killed process"]
)
def test_a_document_that_the_bridge_may_not_have_recorded_is_not_owed(change: dict[str, Any]):
    doctored = without(ledger(), "updated")
    doctored.looks[0] = replace(doctored.looks[0], **change)
    doctored.looks[-1] = replace(doctored.looks[-1], clean=True)
    assert said(doctored) == []


def test_an_end_that_is_not_told_is_found():
    assert said(without(ledger(), "completed")) == [f"{EVENT} was completed, and {VM} told nothing"]


def test_an_end_that_fell_into_the_loss_of_the_journal_is_excused():
    doctored = without(ledger(), "completed")
    doctored.faults.append(fault("torn-journal", VM, 38.0, 42.0))
    assert said(doctored) == []


def test_an_end_after_the_first_look_with_the_new_journal_is_not():
    doctored = without(ledger(), "completed")
    doctored.faults.append(fault("torn-journal", VM, 30.0, 32.0))
    assert said(doctored) == []
    doctored.looks += [Look(VM, 2, at, clean=True, document=[]) for at in (33.0, 33.5)]
    assert said(doctored) == [f"{EVENT} was completed, and {VM} told nothing"]


def canceled() -> Ledger:
    doctored = without(ledger(), "completed")
    doctored.rows.append(row(5, "canceled", LATER))
    sinks = [sink for sink in doctored.sinks if sink != "drain"]
    doctored.deliveries += [delivered(doctored.rows[-1], sink, 50.0) for sink in sinks]
    return doctored


def test_a_bridge_that_never_saw_the_start_may_take_a_completed_event_for_a_canceled_one():
    assert said(canceled()) == []


def test_a_bridge_that_saw_the_start_may_not():
    doctored = canceled()
    shown = [{"key": EVENT, "status": "Started", "state": "s"}]
    doctored.looks += [Look(VM, 1, at, clean=True, document=shown) for at in (30.0, 30.5)]
    assert said(doctored) == [f"{EVENT} was completed, and {VM} told ['canceled']"]


def test_something_that_did_not_happen_is_found():
    doctored = ledger()
    doctored.truth = [each for each in doctored.truth if each["what"] != "updated"]
    assert f"{VM} told of {EVENT} as updated, and that did not happen" in said(doctored)


def test_every_guarantee_has_a_rule():
    assert len(RULES) == 15
