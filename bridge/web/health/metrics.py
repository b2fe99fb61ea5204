"""The metrics of the bridge. No label ever contains an EventId or a VM's name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import get_args

from bridge.approvals.publisher import DROPPED
from bridge.core.cloudevent import TransitionKind
from bridge.journal.cursors import Backlog
from bridge.metadata import answers
from bridge.policy import votes
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import SinkStatus, SourceStatus, Status
from bridge.web.health.process import Usage
from bridge.web.health.prometheus import Family

_OUTCOMES: Mapping[str, tuple[str, ...]] = {
    "recorded": ("",),
    "granted": ("",),
    "refused": (*votes.REASONS, "other"),
    "failed": ("expired", "other"),
    "due": ("",),
    "dropped": (*DROPPED, "other"),
}
"""Each outcome of a vote, and its reasons."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Values that only the journal has."""

    pending: int = 0
    size: int = 0
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)
    """For each sink, since when what waits longest is known to wait; monotonic."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The counters of the web server, and the two clocks."""

    wall: float
    monotonic: float
    started: float
    config_sha256: str
    ready: bool
    tokens_refused: int
    certificates_refused: int
    streams: int
    usage: Usage


def families(runtime: Runtime, readings: Readings, moment: Moment) -> list[Family]:
    sinks = runtime.status.sinks
    return [
        *_process(runtime, moment),
        *_source(runtime.status.source, readings, moment),
        *_sinks(sinks),
        *_backlogs(sinks, readings, moment),
        *_approvals(runtime.status, moment.monotonic),
        *_journal(runtime, readings),
        Family("seb_tokens_refused_total", "counter", "Requests whose token was refused.").add(
            moment.tokens_refused
        ),
        Family(
            "seb_certificates_refused_total", "counter", "Votes by certificates without permission."
        ).add(moment.certificates_refused),
        Family("seb_streams", "gauge", "Open streams of CloudEvents.").add(moment.streams),
        Family("seb_spans_exported_total", "counter", "Spans that an OTLP receiver took.").add(
            runtime.tracing.exported
        ),
        Family(
            "seb_spans_dropped_total", "counter", "Spans that no OTLP receiver took, and are gone."
        ).add(runtime.tracing.dropped),
    ]


def _process(runtime: Runtime, moment: Moment) -> list[Family]:
    status = runtime.status
    configured = status.started if status.configured is None else status.configured
    return [
        Family("seb_build_info", "gauge", "The running version; always 1.").add(
            1, version=runtime.version
        ),
        Family("seb_start_time_seconds", "gauge", "When the bridge started, as Unix time.").add(
            moment.started
        ),
        Family("seb_uptime_seconds", "gauge", "Time since the bridge started.").add(
            max(0.0, moment.monotonic - status.started)
        ),
        Family("seb_ready", "gauge", "1 when /readyz answers 200.").add(int(moment.ready)),
        Family("seb_reloads_failed_total", "counter", "Configurations that were rejected.").add(
            status.reloads_failed
        ),
        Family("seb_config_info", "gauge", "The hash of the configuration in force; always 1.").add(
            1, sha256=moment.config_sha256
        ),
        Family("seb_config_age_seconds", "gauge", "Time since it took effect.").add(
            max(0.0, moment.monotonic - configured)
        ),
        Family(
            "seb_config_last_reload_successful", "gauge", "0 while the last reload was rejected."
        ).add(int(not status.reload_rejected)),
        *_usage(moment.usage),
    ]


def _usage(usage: Usage) -> list[Family]:
    """What client libraries of Prometheus report about each process, under the same names."""
    cpu = Family("process_cpu_seconds_total", "counter", "CPU time that the process has used.")
    memory = Family("process_resident_memory_bytes", "gauge", "Memory that the process occupies.")
    if usage.memory is not None:
        memory.add(usage.memory)
    files = Family("process_open_fds", "gauge", "Files and sockets that the process has open.")
    if usage.files is not None:
        files.add(usage.files)
    return [cpu.add(usage.cpu), memory, files]


def _source(source: SourceStatus, readings: Readings, moment: Moment) -> list[Family]:
    found = [
        Family("seb_polls_total", "counter", "Polls that finished.").add(source.polls),
        Family("seb_source_degraded", "gauge", "1 once source.degraded was published.").add(
            int(source.degraded)
        ),
        Family("seb_pending_events", "gauge", "Scheduled events that are published and open.").add(
            readings.pending
        ),
        Family(
            "seb_notice_seconds", "histogram", "Time left when a scheduled event was first seen."
        ).add_histogram(source.notice),
        Family(
            "seb_poll_duration_seconds", "histogram", "Time until the metadata service answered."
        ).add_histogram(source.requests),
        Family(
            "seb_detect_to_journal_seconds", "histogram", "Time from an answer to the journal."
        ).add_histogram(source.recording),
    ]
    problems = Family("seb_poll_problems_total", "counter", "Polls without a usable answer.")
    for reason, count in _from_zero((*answers.REASONS, "other"), source.problems).items():
        problems.add(count, reason=reason)
    transitions = Family("seb_transitions_total", "counter", "Transitions of scheduled events.")
    for what, count in _from_zero(get_args(TransitionKind), source.transitions).items():
        transitions.add(count, type=what)
    return [*found, problems, transitions, *_ages(source, moment)]


def _ages(source: SourceStatus, moment: Moment) -> list[Family]:
    """Ages in seconds. What never happened has no age, and so no sample."""
    polled = Family("seb_poll_age_seconds", "gauge", "Time since the last poll ended.")
    if source.last_poll is not None:
        polled.add(max(0.0, moment.monotonic - source.last_poll))
    good = Family("seb_source_good_age_seconds", "gauge", "Time since the last usable answer.")
    if (age := source.good_age(moment.monotonic)) is not None:
        good.add(age)
    skew = Family("seb_clock_skew_seconds", "gauge", "How far the local clock is ahead of Azure's.")
    if source.clock_skew is not None:
        skew.add(source.clock_skew)
    return [polled, good, skew]


def _sinks(sinks: Mapping[str, SinkStatus]) -> list[Family]:
    up = Family("seb_sink_up", "gauge", "0 while the sink is unavailable or stopped.")
    untried = Family("seb_sink_untried", "gauge", "1 until it has connected or delivered.")
    stopped = Family("seb_sink_stopped", "gauge", "1 while it waits for seb sinks --resume.")
    delivered = Family("seb_sink_delivered_total", "counter", "CloudEvents the sink has accepted.")
    failed = Family(
        "seb_sink_attempts_failed_total", "counter", "Failed attempts that are retried."
    )
    rejected = Family("seb_sink_rejected_total", "counter", "CloudEvents that became dead letters.")
    filtered = Family(
        "seb_sink_filtered_total", "counter", "CloudEvents filtered out by configuration."
    )
    latency = Family("seb_sink_latency_seconds", "histogram", "Time from the journal to delivery.")
    for name, sink in sinks.items():
        labels = {"sink": name, "type": sink.type}
        up.add(int(sink.state in {"connected", "untried"}), **labels)
        untried.add(int(sink.state == "untried"), **labels)
        stopped.add(int(sink.state == "stopped"), **labels)
        delivered.add(sink.delivered, **labels)
        failed.add(sink.attempts_failed, **labels)
        rejected.add(sink.rejected, **labels)
        filtered.add(sink.filtered, **labels)
        latency.add_histogram(sink.latency, **labels)
    return [up, untried, stopped, delivered, failed, rejected, filtered, latency]


def _waiting_age(oldest: float | None, seen: float, moment: Moment) -> float:
    """By the time in the journal, and at least as long as we know of it: clocks are set back."""
    return 0.0 if oldest is None else max(moment.wall - oldest, moment.monotonic - seen, 0.0)


def _backlogs(sinks: Mapping[str, SinkStatus], readings: Readings, moment: Moment) -> list[Family]:
    waiting = Family("seb_sink_waiting", "gauge", "CloudEvents in the journal that still wait.")
    oldest = Family("seb_sink_oldest_age_seconds", "gauge", "Age of the oldest waiting CloudEvent.")
    dead = Family("seb_sink_dead_letters", "gauge", "Dead letters in the journal.")
    for name, backlog in readings.backlogs.items():
        labels = {"sink": name, "type": sinks[name].type}
        waiting.add(backlog.waiting, **labels)
        seen = readings.seen.get(name, moment.monotonic)
        oldest.add(_waiting_age(backlog.oldest, seen, moment), **labels)
        dead.add(backlog.dead, **labels)
    return [waiting, oldest, dead]


def _from_zero(known: Iterable[str], counts: Mapping[str, int]) -> dict[str, int]:
    """Every known label from the start, so that no first increase is missed; others as one."""
    found = dict.fromkeys(known, 0)
    for label, count in counts.items():
        place = label if label in found else "other"
        found[place] = found.get(place, 0) + count
    return found


def _outcomes(counts: Mapping[tuple[str, str], int]) -> Family:
    became = Family("seb_approvals_total", "counter", "Outcomes of votes and grants.")
    for outcome, reasons in _OUTCOMES.items():
        mine = {reason: count for (what, reason), count in counts.items() if what == outcome}
        for reason, count in _from_zero(reasons, mine).items():
            became.add(count, outcome=outcome, reason=reason)
    return became


def _approvals(status: Status, now: float) -> list[Family]:
    up = Family("seb_approval_source_up", "gauge", "1 while the approval source is connected.")
    received = Family(
        "seb_approval_source_received_total", "counter", "Messages read from the approval source."
    )
    lag = Family(
        "seb_approval_source_lag_records",
        "gauge",
        "Messages not read yet, if the source reports it.",
    )
    heard = Family(
        "seb_approval_source_heard_age_seconds", "gauge", "Time since its last sign of life."
    )
    for name, source in status.listeners.items():
        labels = {"source": name, "type": source.type}
        up.add(int(source.state == "connected"), **labels)
        received.add(source.received, **labels)
        if source.lag is not None:
            lag.add(source.lag, **labels)
        if source.heard is not None:
            heard.add(max(0.0, now - source.heard), **labels)
    started = Family(
        "seb_grant_to_start_seconds", "histogram", "Time from Azure's answer to the start it shows."
    ).add_histogram(status.grant_to_start)
    return [_outcomes(status.approvals), started, up, received, lag, heard]


def _journal(runtime: Runtime, readings: Readings) -> list[Family]:
    return [
        Family("seb_journal_size_bytes", "gauge", "Size of the journal.").add(readings.size),
        Family("seb_journal_max_size_bytes", "gauge", "Limit of its size: journal.max_size.").add(
            runtime.config.journal.max_size
        ),
        Family("seb_journal_trouble", "gauge", "1 while the journal cannot be written.").add(
            int(runtime.journal.trouble is not None)
        ),
        Family(
            "seb_journal_losses_total", "counter", "Deliveries lost because the journal was full."
        ).add(runtime.status.journal_losses),
        Family("seb_journal_set_aside_total", "counter", "Journals that could not be used.").add(
            runtime.journal.times_set_aside
        ),
    ]
