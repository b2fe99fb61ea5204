"""What is due when, in the simulated world."""

from datetime import timedelta
from functools import partial

from support.simulator_tools import START

from bridge.simulator.world.agenda import Agenda

SECOND = timedelta(seconds=1)


def test_appointments_are_kept_in_order_of_time_and_then_of_making():
    agenda, done = Agenda(), list[str]()
    for name, seconds in (("late", 2), ("first", 1), ("second", 1)):
        agenda.at(START + seconds * SECOND, partial(done.append, name))
    agenda.run(START + SECOND)
    assert done == ["first", "second"]
    assert agenda.next() == START + 2 * SECOND
    agenda.run(START + 2 * SECOND)
    assert done == ["first", "second", "late"]
    assert agenda.next() is None


def test_what_is_canceled_is_not_done_and_not_waited_for():
    agenda, done = Agenda(), list[str]()
    agenda.at(START, lambda: done.append("canceled")).canceled = True
    agenda.at(START + SECOND, lambda: done.append("kept"))
    assert agenda.next() == START + SECOND
    agenda.run(START + SECOND)
    assert done == ["kept"]


def test_appointments_that_become_due_meanwhile_run_too():
    agenda, done = Agenda(), list[str]()
    agenda.at(START, lambda: agenda.at(START, lambda: done.append("made meanwhile")))
    agenda.run(START)
    assert done == ["made meanwhile"]
