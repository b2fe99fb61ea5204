from datetime import timedelta

import pytest
from support.clock import ShiftedClock
from support.polling import restarted

from bridge.runtime.status import ListenerStatus, SinkStatus, SourceStatus, Status, stuck
from bridge.simulator import Scenario, Simulator
from bridge.web.context import WebContext
from bridge.web.health.readiness import HealthView, readiness

NOW = 10_000.0


def view(**changes):
    usual = {
        "status": changes.pop("status", None) or answered(0),
        "monotonic": NOW,
        "poll_interval": 1.0,
        "scope": "own",
        "vm_name": "vm",
        "journal_trouble": None,
    }
    return HealthView(**{**usual, **changes})


def answered(seconds_ago, **more):
    return Status(source=SourceStatus(good_at=NOW - seconds_ago, **more))


def test_a_healthy_bridge_is_ready():
    assert readiness(view()).as_json() == {"ready": True, "reasons": [], "notes": []}


def test_a_bridge_that_never_had_an_answer_is_not_ready():
    status = Status(source=SourceStatus(problem="unreachable", detail="Connection refused."))
    (reason,) = readiness(view(status=status)).reasons
    assert reason.what == "source"
    assert reason.why == (
        "the metadata service has not answered yet (unreachable: Connection refused)"
    )


@pytest.mark.parametrize(
    ("age", "interval", "ready"),
    [(30, 1.0, True), (31, 1.0, False), (31, 10.0, True), (101, 10.0, False)],
)
def test_a_good_answer_is_fresh_for_thirty_seconds_or_ten_polls(age, interval, ready):
    assert readiness(view(status=answered(age), poll_interval=interval)).ready is ready


def test_silence_is_described_in_words():
    (reason,) = readiness(view(status=answered(3605, problem="timeout"))).reasons
    assert reason.why == "the metadata service has given no usable answer for 1h (timeout)"


@pytest.fixture
async def polled(tmp_path):
    """A bridge under a simulated service, with a clock that the test moves."""
    async with (
        Simulator(Scenario(rate_limit=None)) as simulator,
        restarted(simulator, tmp_path / "journal.db", clock=ShiftedClock()) as bridge,
    ):
        yield bridge


@pytest.mark.parametrize("skew", ["10m", "-10m"])
async def test_with_a_skewed_clock_a_source_that_is_gone_still_makes_the_bridge_unready(
    polled, skew
):
    polled.world.fault("skew", skew=skew)
    await polled.poll()
    assert WebContext(polled.runtime).readiness().ready, "a wrong clock makes no answer old"
    polled.world.clear_faults()
    polled.world.fault("reset")
    polled.clock.ahead += timedelta(seconds=60)
    await polled.poll()
    (reason,) = WebContext(polled.runtime).readiness().reasons
    assert reason.why.startswith("the metadata service has given no usable answer for ")


async def test_a_clock_that_is_set_back_does_not_make_an_answer_young(polled):
    await polled.poll()
    polled.clock.stepped -= timedelta(hours=1)
    polled.clock.ahead += timedelta(seconds=31)
    assert not WebContext(polled.runtime).readiness().ready


@pytest.mark.parametrize(("seconds", "how"), [(600.0, "ahead of"), (-600.0, "behind")])
def test_a_clock_that_is_off_by_more_than_a_minute_is_a_note(seconds, how):
    found = readiness(view(status=answered(0, clock_skew=seconds, skewed=True)))
    assert found.ready
    (note,) = found.notes
    assert note.what == "clock"
    assert note.why.startswith(f"this VM's clock is 10m {how} Azure's")
    assert readiness(view(status=answered(0, clock_skew=50.0))).notes == ()


def test_a_journal_that_cannot_be_written_is_a_reason():
    (reason,) = readiness(view(journal_trouble="/x cannot be written: disk full")).reasons
    assert (reason.what, reason.why) == ("journal", "/x cannot be written: disk full")


def test_a_required_sink_is_a_reason_and_a_best_effort_sink_is_a_note():
    status = answered(0)
    status.sinks = {
        "bus": SinkStatus("kafka", required=True, state="unavailable", error="no broker"),
        "chat": SinkStatus("webhook", required=False, state="unavailable"),
        "new": SinkStatus("file", required=True),
        "good": SinkStatus("file", required=True, state="connected"),
    }
    found = readiness(view(status=status))
    assert [(one.what, one.why) for one in found.reasons] == [("sink bus", "no broker")]
    assert [(one.what, one.why) for one in found.notes] == [
        ("sink new", "untried: nothing was delivered yet"),
        ("sink chat", "unavailable"),
    ]


def test_a_stopped_sink_says_why_and_what_to_type():
    status = answered(0)
    status.sinks = {
        "bus": SinkStatus("webhook", required=True, state="stopped", error="410: unsubscribed"),
        "chat": SinkStatus("webhook", required=False, state="stopped", error="410"),
    }
    found = readiness(view(status=status))
    why = "stopped: 410: unsubscribed; fix that, then run: seb sinks --resume bus"
    assert [(one.what, one.why) for one in found.reasons] == [("sink bus", why)]
    assert [one.what for one in found.notes] == ["sink chat"]


def test_an_unknown_name_is_a_note_only_where_it_matters():
    (note,) = readiness(view(vm_name=None)).notes
    assert note.what == "scope"
    assert readiness(view(vm_name=None)).ready
    assert readiness(view(vm_name=None, scope="all")).notes == ()


def test_losses_are_noted():
    status = answered(0)
    status.journal_losses = 3
    (note,) = readiness(view(status=status)).notes
    assert note.why.startswith("3 deliveries")


async def test_a_journal_that_was_set_aside_is_noted_until_the_next_start(tmp_path):
    path = tmp_path / "journal.db"
    path.write_bytes(b"garbage " * 1000)
    async with Simulator(Scenario(rate_limit=None)) as simulator:
        async with restarted(simulator, path) as bridge:
            await bridge.poll()
            found = WebContext(bridge.runtime).readiness()
            assert found.ready
            (note,) = [one for one in found.notes if one.what == "journal"]
            assert note.why.startswith("a journal was set aside as journal.db.corrupt-")
            assert " (file is not a database); local votes and holds" in note.why
        async with restarted(simulator, path) as bridge:
            assert "journal" not in [
                one.what for one in WebContext(bridge.runtime).readiness().notes
            ]


def test_a_loop_that_polls_is_alive_and_a_stuck_one_is_not():
    status = Status(started=100.0)
    assert stuck(status, 1.0, 240.0) is None
    assert stuck(status, 1.0, 260.0) == "the poll loop has not moved for 160 s"
    status.source.last_poll = 250.0
    assert stuck(status, 1.0, 260.0) is None


def test_a_slow_poller_has_more_time():
    assert stuck(Status(started=0.0), 300.0, 400.0) is None
    assert stuck(Status(started=0.0), 300.0, 451.0)


def test_an_approval_source_that_cannot_be_read_or_is_silent_is_a_note():
    status = answered(0)
    status.listeners = {
        "down": ListenerStatus("kafka", state="unavailable", error="Connection refused"),
        "fine": ListenerStatus("kafka", state="connected", heard=NOW - 100),
        "new": ListenerStatus("kafka"),
        "silent": ListenerStatus("kafka", state="connected", heard=NOW - 300),
    }
    found = readiness(view(status=status))
    assert found.ready
    assert [(note.what, note.why) for note in found.notes] == [
        ("approvals down", "Connection refused"),
        ("approvals silent", "has been silent for 5m"),
    ]
