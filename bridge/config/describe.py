"""What a configuration will do, in sentences, for `seb check`; secrets by name only."""

from collections.abc import Iterator

from bridge import platform
from bridge.config.describe_approvals import describe_approvals
from bridge.config.models import Config, Http, Source
from bridge.fields import write_duration
from bridge.plugins import SinkSettings


def describe(config: Config) -> list[str]:
    """One sentence for each thing that the bridge will do."""
    return [
        f"Configured by {config.file}." if config.file else "No configuration file: all defaults.",
        *_source(config.source),
        *_cloudevents(config),
        *(_sink(name, sink) for name, sink in config.sinks.items()),
        *describe_approvals(config.approvals, config.http),
        *_journal(config),
        *_http(config.http),
        _control(config.control_group),
        f"At the end, sinks get {write_duration(config.stop_grace)} to drain.",
    ]


def _source(source: Source) -> Iterator[str]:
    where = (
        "Finds the metadata service and polls it"
        if source.endpoint == "auto"
        else f"Polls {source.endpoint}"
    )
    every = write_duration(source.poll_interval)
    yield f"{where} every {every} with api-version {source.api_version}."
    name = source.vm_name or "its name comes from instance metadata"
    yield (
        f"Publishes scheduled events that name this VM ({name})."
        if source.scope == "own"
        else "Publishes all scheduled events that this VM can see."
    )
    yield (
        f"Reports the source as degraded after {write_duration(source.degraded_after)} without a "
        f"useful answer, and what is pending every {write_duration(source.snapshot_interval)}."
    )


def _cloudevents(config: Config) -> Iterator[str]:
    if config.cloudevents.source:
        yield f"CloudEvents come from the source {config.cloudevents.source}."
    copied = [f"the VM tag {tag}" for tag in config.source.tags]
    copied += [f"{name}={value}" for name, value in config.source.labels.items()]
    if copied:
        yield f"CloudEvents carry in observer: {', '.join(copied)}."
    margin = write_duration(config.approvals.margin)
    yield f"An approval is asked for until {margin} before notBefore (approveBy)."


def _sink(name: str, sink: SinkSettings) -> str:
    details = [f"gives up after {write_duration(sink.retry.max_age)}"]
    if sink.only.types is not None:
        details.append(f"only types {', '.join(sink.only.types)}")
    if sink.only.event_types is not None:
        details.append(f"only event types {', '.join(sink.only.event_types)}")
    if sink.stale == "skip":
        details.append("skips what is overtaken")
    if not sink.required:
        details.append("best effort")
    return f"Sink {name} {sink.describe()} ({'; '.join(details)})."


def _journal(config: Config) -> Iterator[str]:
    places = [config.state_dir] if config.state_dir else platform.state_dirs()
    where = ", else in ".join(str(place) for place in places)
    keep, size = write_duration(config.journal.keep), config.journal.max_size
    yield (
        f"Keeps its journal in {where}: what is settled for {keep}, "
        f"and at most {size / 1024**2:.4g}MiB."
    )


def _http(http: Http) -> Iterator[str]:
    if http.listen is None:
        yield "Serves no console and no API."
    else:
        how = "https" if http.tls else "http"
        some = http.tokens or http.asks_for_certificates
        rights = "" if some else ", read-only, for there are no tokens"
        default = "; when that is taken, goes on without" if http.listen_is_default else ""
        yield f"Serves console and API at {how}://{http.listen}{rights}{default}."
        if not http.tls and not http.listen.is_loopback:
            yield "That address is not loopback and not encrypted, as insecure: true says."
        yield from _callers(http)
    if http.listen and http.webhook_origins:
        origins = ", ".join(http.webhook_origins)
        yield f"Consents to CloudEvents webhooks with approvals from {origins}."
    if http.probes_listen:
        yield f"Serves probes and metrics, without a token, at http://{http.probes_listen}."


def _callers(http: Http) -> Iterator[str]:
    for token in http.tokens:
        yield f"Token {token.name} may {' and '.join(token.scopes)}."
    if http.tls and http.tls.client_ca:
        who = f"Whoever shows a certificate signed by {http.tls.client_ca} may read"
        if http.tls.client_certificates == "required":
            yield f"{who}; without one nobody gets a connection."
        else:
            yield f"{who}; without one a client needs a token, or signs its votes."


def _control(group: str | None) -> str:
    who = f"its owner and the group {group}" if group else "its owner only"
    return f"Commands reach it over the control socket, which is open to {who}."
