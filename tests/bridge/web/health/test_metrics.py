import re
from datetime import timedelta

from support.clock import ShiftedClock
from support.guarded_bridge import scrape
from support.prometheus import parse, value
from support.served_bridge import announce, kill

from bridge.approvals.publisher import DROPPED
from bridge.config import fingerprint
from bridge.core.cloudevent import TRANSITIONS
from bridge.metadata import answers
from bridge.policy import votes
from bridge.runtime.status import ListenerStatus, ReloadResult

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"


async def test_a_fresh_bridge_has_metrics_that_prometheus_reads(running):
    found = parse(await scrape(running.http))
    assert value(found, "seb_build_info", version="1.2.3") == 1
    assert value(found, "seb_ready") == 1
    assert value(found, "seb_polls_total") == 1
    assert value(found, "seb_sink_up", sink="bus", type="kafka") == 1
    assert value(found, "seb_journal_size_bytes") > 0
    assert value(found, "seb_journal_trouble") == 0
    assert value(found, "seb_start_time_seconds") > 1_700_000_000
    assert 0 <= value(found, "seb_poll_age_seconds") < 30
    assert value(found, "process_cpu_seconds_total") > 0
    assert all(name.startswith(("seb_", "process_")) for name in found)


async def test_a_stopped_sink_differs_from_one_that_is_down(running):
    sinks = running.runtime.status.sinks
    sinks["bus"].state, sinks["pager"].state = "stopped", "unavailable"
    found = parse(await scrape(running.http))
    for name, kind, stopped in (("bus", "kafka", 1), ("pager", "webhook", 0)):
        assert value(found, "seb_sink_up", sink=name, type=kind) == 0
        assert value(found, "seb_sink_stopped", sink=name, type=kind) == stopped


async def test_an_untried_sink_is_neither_down_nor_known_to_work(running):
    running.runtime.status.sinks["bus"].state = "untried"
    found = parse(await scrape(running.http))
    for name, kind, untried in (("bus", "kafka", 1), ("pager", "webhook", 0)):
        assert value(found, "seb_sink_up", sink=name, type=kind) == 1
        assert value(found, "seb_sink_untried", sink=name, type=kind) == untried


async def test_what_happened_is_counted(running):
    (told,) = await announce(running.journal, FIRST)
    await kill(running.journal, "bus", told)
    source = running.runtime.status.source
    source.problems = {"unreachable": 2, "throttled": 1}
    source.transitions = {"scheduled": 4}
    source.degraded = True
    source.notice.observe(899)
    running.runtime.status.sinks["pager"].delivered = 7
    running.runtime.status.sinks["pager"].latency.observe(0.2)
    found = parse(await scrape(running.http))
    assert value(found, "seb_poll_problems_total", reason="unreachable") == 2
    assert value(found, "seb_transitions_total", type="scheduled") == 4
    assert value(found, "seb_source_degraded") == 1
    assert value(found, "seb_pending_events") == 1
    assert value(found, "seb_sink_delivered_total", sink="pager", type="webhook") == 7
    assert value(found, "seb_sink_waiting", sink="pager", type="webhook") == 1
    assert value(found, "seb_sink_waiting", sink="bus", type="kafka") == 0
    assert value(found, "seb_sink_dead_letters", sink="bus", type="kafka") == 1
    assert found["seb_notice_seconds"].samples["seb_notice_seconds_count", ()] == 1


async def test_a_clock_that_is_set_back_does_not_make_what_waits_young(running):
    clock = running.runtime.clock = ShiftedClock()
    await announce(running.journal, FIRST)
    await scrape(running.http)
    clock.stepped -= timedelta(hours=1)
    clock.ahead += timedelta(seconds=100)
    found = parse(await scrape(running.http))
    age = value(found, "seb_sink_oldest_age_seconds", sink="bus", type="kafka")
    assert 100 <= age < 200


async def test_no_label_names_an_event_or_a_vm(running):
    await announce(running.journal, FIRST)
    text = await scrape(running.http)
    assert not re.search(f"(?i){FIRST}|FrontEnd_IN_0", text)


async def test_numbers_of_a_broken_source_have_no_age(running):
    source = running.runtime.status.source
    source.good_at = source.last_poll = source.clock_skew = None
    found = parse(await scrape(running.http))
    assert "seb_poll_age_seconds" not in found
    assert value(found, "seb_ready") == 0


async def test_every_series_of_a_known_label_is_there_from_the_start(running):
    running.runtime.status.listeners["bus"] = ListenerStatus("kafka")
    found = parse(await scrape(running.http))
    for outcome in ("recorded", "granted", "due"):
        assert value(found, "seb_approvals_total", outcome=outcome, reason="") == 0
    assert value(found, "seb_approvals_total", outcome="failed", reason="expired") == 0
    for reason in votes.REASONS:
        assert value(found, "seb_approvals_total", outcome="refused", reason=reason) == 0
    assert value(found, "seb_approvals_total", outcome="refused", reason="other") == 0
    assert value(found, "seb_approvals_total", outcome="dropped", reason="other") == 0
    assert value(found, "seb_poll_problems_total", reason="other") == 0
    for reason in DROPPED:
        assert value(found, "seb_approvals_total", outcome="dropped", reason=reason) == 0
    for reason in answers.REASONS:
        assert value(found, "seb_poll_problems_total", reason=reason) == 0
    for what in TRANSITIONS:
        assert value(found, "seb_transitions_total", type=what) == 0
    for name in ("delivered", "rejected", "filtered", "attempts_failed"):
        assert value(found, f"seb_sink_{name}_total", sink="bus", type="kafka") == 0
    assert value(found, "seb_approval_source_received_total", source="bus", type="kafka") == 0
    assert value(found, "seb_journal_set_aside_total") == 0


async def test_a_journal_that_was_set_aside_is_counted(running):
    await running.journal.claim("another VM")
    await running.journal.claim("this VM")
    found = parse(await scrape(running.http))
    assert value(found, "seb_journal_set_aside_total") == 1


async def test_the_configuration_has_a_hash_and_an_age(running):
    found = parse(await scrape(running.http))
    sha256 = fingerprint(running.runtime.config)
    assert value(found, "seb_config_info", sha256=sha256) == 1
    assert 0 <= value(found, "seb_config_age_seconds") < 30
    running.runtime.status.configured = running.runtime.clock.monotonic() - 1000
    found = parse(await scrape(running.http))
    assert 1000 <= value(found, "seb_config_age_seconds") < 1030


async def test_a_reload_that_was_rejected_shows_until_one_succeeds(running):
    found = parse(await scrape(running.http))
    assert value(found, "seb_config_last_reload_successful") == 1
    running.runtime.status.reload = ReloadResult("rejected", 0.0, "local", "control")
    found = parse(await scrape(running.http))
    assert value(found, "seb_config_last_reload_successful") == 0


async def test_histograms_have_bounds_that_suit_what_they_measure(running):
    status = running.runtime.status
    status.source.notice.observe(29)
    status.source.recording.observe(0.004)
    status.grant_to_start.observe(0.4)
    found = parse(await scrape(running.http))
    for name, bound in (
        ("seb_notice_seconds", "30"),
        ("seb_detect_to_journal_seconds", "0.005"),
        ("seb_grant_to_start_seconds", "0.5"),
    ):
        below = {
            dict(labels).get("le"): count for (_, labels), count in found[name].samples.items()
        }
        assert below[bound] == 1, name


async def test_a_reason_that_a_plugin_makes_up_does_not_make_a_series_for_each(running):
    for number in range(500):
        running.runtime.status.count_approval("dropped", f"made-up-{number}")
    found = parse(await scrape(running.http))
    assert len(found["seb_approvals_total"].samples) < 60
    assert value(found, "seb_approvals_total", outcome="dropped", reason="other") == 500


async def test_approvals_and_their_sources_are_counted(running):
    status = running.runtime.status
    status.count_approval("granted")
    for _ in range(2):
        status.count_approval("refused", "expired")
    heard = running.runtime.clock.monotonic() - 100
    status.listeners["bus"] = ListenerStatus("kafka", "connected", received=7, heard=heard, lag=3)
    status.listeners["mqtt"] = ListenerStatus("mqtt", "unavailable")
    found = parse(await scrape(running.http))
    assert value(found, "seb_approvals_total", outcome="granted", reason="") == 1
    assert value(found, "seb_approvals_total", outcome="refused", reason="expired") == 2
    assert value(found, "seb_approval_source_up", source="bus", type="kafka") == 1
    assert value(found, "seb_approval_source_up", source="mqtt", type="mqtt") == 0
    assert value(found, "seb_approval_source_received_total", source="bus", type="kafka") == 7
    assert value(found, "seb_approval_source_lag_records", source="bus", type="kafka") == 3
    assert len(found["seb_approval_source_lag_records"].samples) == 1
    ages = found["seb_approval_source_heard_age_seconds"].samples
    assert [100 <= age < 130 for age in ages.values()] == [True], "mqtt was never heard"
