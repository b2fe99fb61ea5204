"""A sink is connected if it has a connection or has delivered something, and not before."""

import logging
import time

import pytest
from support.deliveries import record, said_of_sinks
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.plugins import Rejected, Unavailable


async def test_a_sink_without_a_connection_is_untried_until_its_first_delivery(journal, caplog):
    caplog.set_level(logging.INFO, "bridge")
    recorder = RecordingSink(connects=False)
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered)
        await record(journal, about("A", eventType="Freeze"))
        assert worker.status.state == "untried"
        await until(lambda: worker.status.state == "connected")
    assert said_of_sinks(caplog) == ["sink.connected"]


async def test_a_sink_with_a_connection_is_connected_once_it_is_entered(journal):
    worker = dispatcher_for(journal, RecordingSink())
    assert worker.status.state == "untried"
    async with at_work(worker):
        await until(lambda: worker.status.state == "connected")


async def test_a_first_result_that_fails_is_unavailable(journal):
    worker = dispatcher_for(journal, RecordingSink(lambda _: Unavailable("busy"), connects=False))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
    assert worker.status.error == "busy"


async def test_a_receiver_that_rejects_a_cloudevent_answers(journal):
    worker = dispatcher_for(journal, RecordingSink(lambda _: Rejected("no"), connects=False))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "connected")


async def test_a_failed_look_is_unavailable_and_a_good_one_is_untried_again(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    recorder = RecordingSink(entering=lambda: fail(Unavailable("nobody")), connects=False)
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.error == "nobody")
        recorder.entering = lambda: None
        await until(lambda: worker.status.state == "untried")
        assert worker.status.error is None
    assert said_of_sinks(caplog) == ["sink.unavailable", "sink.untried"]


async def test_entering_again_does_not_hide_that_the_last_delivery_failed(journal, hurry):
    recorder = RecordingSink(lambda _: fail(OSError("reset")), connects=False)
    worker = dispatcher_for(journal, recorder)
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: recorder.entered > 2)
        assert (worker.status.state, worker.status.error) == ("unavailable", "reset")


@pytest.mark.parametrize("connects", [True, False])
async def test_a_resumed_sink_is_untried_until_it_proves_itself(journal, connects):
    worker = dispatcher_for(journal, RecordingSink(connects=connects))
    worker.status.state = "stopped"
    assert worker.status.resume(time.time())
    assert worker.status.state == "untried"
