"""Describe in sentences what a configuration does, for `seb check`; secrets by name only."""

from collections.abc import Iterator, Sequence

from bridge import platform
from bridge.common.fields import write_duration
from bridge.config.approvals import ApprovalsSettings
from bridge.config.contradictions import warnings, weak_tokens
from bridge.config.models import Config, HttpSettings, SourceSettings, TelemetrySettings
from bridge.config.values import Network
from bridge.plugins import SinkSettings
from bridge.policy.allow import Allow
from bridge.policy.require import Approvers, Count, Require

_TRUST = {
    "transport": "anyone who may publish there is trusted",
    "signed": "each one must be signed",
}
_REQUIRE = {
    "any": "One approval is enough for all VMs of a scheduled event.",
    "each-resource": "A scheduled event is approved when each of its VMs has an approval.",
}
_LEADER = {
    "first-resource": "The bridge on the first VM tells Azure; each later one waits {} longer.",
    "none": "Every bridge on one of the event's VMs tells Azure immediately.",
}


def describe(config: Config) -> dict[str, list[str]]:
    """Sentences by subject, the warnings first: one for each thing that the bridge does."""
    return {
        "warnings": [*warnings(config), *weak_tokens(config.http)],
        "source": [*_source(config.source), *_cloudevents(config)],
        "sinks": [
            *(_sink(name, sink) for name, sink in config.sinks.items()),
            f"On shutdown, sinks get {write_duration(config.stop_grace)} to drain.",
        ],
        "approvals": list(_approvals(config.approvals, config.http)),
        "HTTP": [*_http(config.http), _control(config.control_group)],
        "journal": list(_journal(config)),
        "telemetry": list(_telemetry(config.telemetry)),
    }


def _source(source: SourceSettings) -> Iterator[str]:
    where = (
        "Finds the metadata service and polls it"
        if source.endpoint == "auto"
        else f"Polls {source.endpoint}"
    )
    every = write_duration(source.poll_interval)
    yield f"{where} every {every} with api-version {source.api_version}."
    name = source.vm_name or "its name is read from instance metadata"
    yield (
        f"Publishes scheduled events that name this VM ({name})."
        if source.scope == "own"
        else "Publishes all scheduled events that this VM can see."
    )
    yield (
        f"Reports the source as degraded after {write_duration(source.degraded_after)} without a "
        f"usable answer, and pending events every {write_duration(source.snapshot_interval)}."
    )


def _cloudevents(config: Config) -> Iterator[str]:
    if config.cloudevents.source:
        yield f"CloudEvents have the source {config.cloudevents.source}."
    copied = [f"the VM tag {tag}" for tag in config.source.tags]
    copied += [f"{name}={value}" for name, value in config.source.labels.items()]
    if copied:
        yield f"In every CloudEvent, observer contains {', '.join(copied)}."
    margin = write_duration(config.approvals.margin)
    yield f"The deadline for approvals (approveBy) is {margin} before notBefore."


def _sink(name: str, sink: SinkSettings) -> str:
    details = [f"gives up after {write_duration(sink.retry.max_age)}"]
    if sink.only.types is not None:
        details.append(f"only types {', '.join(sink.only.types)}")
    if sink.only.event_types is not None:
        details.append(f"only event types {', '.join(sink.only.event_types)}")
    if sink.stale == "skip":
        details.append("skips outdated states")
    if not sink.required:
        details.append("best effort")
    return f"Sink {name} {sink.describe()} ({'; '.join(details)})."


def _approvals(asked: ApprovalsSettings, http: HttpSettings) -> Iterator[str]:
    """Where approvals come from, who may give them, how many are enough, and who acts."""
    for name, source in asked.sources.items():
        yield f"Approvals from {name} {source.describe()}; {_TRUST[source.trust]}."
    yield _local(asked, http)
    yield from (_entry(rule) for rule in asked.allow)
    if asked.allow:
        yield "Nobody else may vote, on any channel."
    yield _enough(asked.require)
    if asked.require != "any" and not asked.sources:
        yield (
            "Other bridges do not see votes given to this bridge, and approvals.from names no "
            "source: votes from several VMs are not counted together."
        )
    yield from (f"Automatically approves {rule}." for rule in asked.auto)
    yield from _manner(asked)


def _local(asked: ApprovalsSettings, http: HttpSettings) -> str:
    channels = ["over the control socket"]
    names = [token.name for token in http.tokens if "approve" in token.scopes]
    if http.listen and names:
        channels.append(f"over HTTP with the token {' or '.join(names)}")
    if http.listen and http.asks_for_certificates and asked.allow:
        channels.append("over HTTP with a client certificate whose subject is listed")
    if http.listen and any(rule.keys and rule.via in (None, "http") for rule in asked.allow):
        channels.append("over HTTP if they are signed")
    return f"Accepts approvals {_and(channels, ', and ')}."


def _entry(rule: Allow) -> str:
    what = f" {' or '.join(rule.event_types)} events" if rule.event_types else ""
    parts = [f"{rule.approver} may {_and(rule.decisions)}{what}"]
    if rule.resources:
        parts.append(f"for VMs like {' or '.join(rule.resources)}")
    if rule.all_resources:
        parts.append("for all VMs of an event together")
    if rule.via:
        parts.append(f"via {rule.via} only")
    proofs = [f"the token {rule.token}"] if rule.token else []
    if rule.certificate:
        proofs.append(f"the certificate {rule.certificate}")
    if rule.keys:
        proofs.append("one of its keys" if len(rule.keys) > 1 else "its key")
    if proofs:
        parts.append(f"proved by {' or '.join(proofs)}")
    return f"{', '.join(parts)}."


def _and(names: Sequence[str], last: str = " and ") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return last.join(filter(None, (", ".join(names[:-1]), names[-1])))


def _enough(require: Require) -> str:
    if isinstance(require, Count):
        return f"A scheduled event needs {require.count} different verified approvers."
    if isinstance(require, Approvers):
        names = ", ".join(require.approvers)
        return f"A scheduled event needs approval from each of these verified approvers: {names}."
    return _REQUIRE[require]


def _manner(asked: ApprovalsSettings) -> Iterator[str]:
    yield _LEADER[asked.leader].format(write_duration(asked.takeover_after))
    hold, early = write_duration(asked.hold_timeout), write_duration(asked.early_grace)
    yield f"A hold lasts {hold} and never stops Azure; an early vote waits {early} for its event."
    yield (
        "Other bridges do not know of a hold that is given to this bridge over the control socket "
        "or HTTP: if the event has several VMs, one of them may take over and tell Azure."
    )
    if asked.remind:
        moments = " and ".join(write_duration(seconds) for seconds in asked.remind)
        yield f"While votes are missing, publishes approval.due {moments} before notBefore."
    if asked.answer_strays:
        yield "Publishes refusals of votes that no bridge acts on; let one bridge per topic do it."
    if asked.dry_run:
        yield "Dry run: decides and publishes, but tells Azure nothing."


def _journal(config: Config) -> Iterator[str]:
    places = [config.state_dir] if config.state_dir else platform.state_dirs()
    where = ", else in ".join(str(place) for place in places)
    keep, size = write_duration(config.journal.keep), config.journal.max_size
    yield (
        f"Keeps its journal in {where}: settled CloudEvents for {keep}, "
        f"at most {size / 1024**2:.4g}MiB."
    )
    if config.journal.newer == "set-aside":
        yield "Sets a journal of a newer version aside, with all that is undelivered in it."


def _http(http: HttpSettings) -> Iterator[str]:
    if http.listen is None:
        yield "Serves no HTTP API."
    else:
        how = "https" if http.tls else "http"
        some = http.tokens or http.asks_for_certificates
        rights = "" if some else ", read-only because there are no tokens"
        default = "; if that port is taken, runs without it" if http.listen_is_default else ""
        yield f"Serves the HTTP API at {how}://{http.listen}{rights}{default}."
        if not http.tls and not http.listen.is_loopback:
            yield "That address is not loopback and not encrypted, as insecure: true allows."
        yield from _callers(http)
        yield from _proxies(http)
    if http.listen and http.webhook_origins:
        origins = ", ".join(http.webhook_origins)
        yield f"Accepts CloudEvents webhooks with approvals from {origins}."
    if http.probes_listen:
        yield f"Serves probes and metrics, without a token, at http://{http.probes_listen}."


def _telemetry(telemetry: TelemetrySettings) -> Iterator[str]:
    if telemetry.otlp is None:
        return
    names = sorted(telemetry.headers)
    given = f", with the header{'s' * (len(names) > 1)} {_and(names)}" if names else ""
    yield (
        f"Sends traces to {telemetry.otlp}{given}, and writes traceparent into CloudEvents. What "
        "the receiver does not take is dropped and counted."
    )
    if telemetry.insecure and telemetry.otlp.startswith("http:"):
        yield "Traces may leave this machine unencrypted, as insecure: true allows."


def _proxies(http: HttpSettings) -> Iterator[str]:
    if http.public_url:
        urls = _and([str(url) for url in http.public_url])
        yield f"Proxies serve it at {urls}; browsers may use it from there."
    if http.trusted_proxies:
        places = _and([_place(one) for one in http.trusted_proxies])
        yield f"X-Forwarded-For from {places} names the caller in logs and audits, and for limits."


def _place(network: Network) -> str:
    """A network of one address as that address."""
    return str(network.network_address if network.num_addresses == 1 else network)


def _callers(http: HttpSettings) -> Iterator[str]:
    for token in http.tokens:
        yield f"Token {token.name} may {' and '.join(token.scopes)}."
    if http.tls and http.tls.client_ca:
        who = f"Anyone with a certificate signed by {http.tls.client_ca} may read"
        if http.tls.client_certificates == "required":
            yield f"{who}; connections without one are refused."
        else:
            yield f"{who}; other clients need a token, or sign their votes."


def _control(group: str | None) -> str:
    who = f"its owner and the group {group}" if group else "its owner only"
    return f"Commands use the control socket, which is open to {who}."
