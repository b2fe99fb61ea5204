import re

import pytest
from support.config_text import MTLS, TAIL_SOURCE, WHSEC, approvals, in_format

from bridge.config import fingerprint, load
from bridge.config.describe import describe


def sentences(config):
    return [one for said in describe(config).values() for one in said]


def test_a_journal_of_a_newer_version_is_mentioned_only_if_it_will_be_set_aside(read):
    sentence = "Sets a journal of a newer version aside, with all that is undelivered in it."
    assert sentence in sentences(read("journal: {newer: set-aside}"))
    assert sentence not in sentences(read("{}"))


def test_secrets_appear_neither_in_sentences_nor_in_values(read):
    config = read(
        "http: {tokens: [{name: ops, token: '${SECRET}', scopes: [read]}]}", SECRET="s3cr3t"
    )
    assert config.http.tokens[0].token.get() == "s3cr3t"
    assert "Token ops may read." in sentences(config)
    for shown in (repr(config), str(config), config.model_dump_json(), str(sentences(config))):
        assert "s3cr3t" not in shown


def test_the_secret_of_a_format_is_never_shown(read, problems):
    text = in_format("{type: pagerduty, routing_key: '${KEY}', x: 1}")
    assert "s3cret" not in str(problems(text, KEY="s3cret"))
    good = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="s3cret")
    assert "s3cret" not in repr(good) + str(sentences(good))
    rotated = read(in_format("{type: pagerduty, routing_key: '${KEY}'}"), KEY="other")
    assert fingerprint(good) == fingerprint(rotated)
    assert fingerprint(good) != fingerprint(read(in_format("slack")))


@pytest.mark.parametrize(
    "sink",
    [
        "{type: stdout, format: slack}",
        "{type: file, path: /x, format: slack}",
        "{type: kafka, bootstrap_servers: [a], format: slack}",
        "{type: mqtt, host: a, format: slack}",
    ],
)
def test_the_sentence_about_a_sink_names_its_format(read, sink):
    [said] = [one for one in sentences(read(f"sinks: {{out: {sink}}}")) if "Sink out" in one]
    assert re.search(r"(as|of) slack\b", said)
    assert "skips outdated states" in said


def test_a_configuration_is_described_in_sentences(read, tmp_path):
    said = "\n".join(
        sentences(
            read(f"""
                source: {{endpoint: "http://127.0.0.1:8081", poll_interval: 2s, scope: all, tags: [team]}}
                cloudevents: {{source: /mine}}
                state_dir: {tmp_path}
                control_group: root
                sinks:
                  out: {{type: stdout, required: false, stale: skip, only: {{types: [a.*], event_types: [Reboot]}}}}
                http: {{listen: 0.0.0.0:80, tokens: [abc], insecure: true, probes_listen: 0.0.0.0:90}}
            """)
        )
    )
    for sentence in (
        "Polls http://127.0.0.1:8081 every 2s with api-version 2020-07-01.",
        "Publishes all scheduled events that this VM can see.",
        "CloudEvents have the source /mine.",
        "In every CloudEvent, observer contains the VM tag team.",
        f"Keeps its journal in {tmp_path}: settled CloudEvents for 30d, at most 256MiB.",
        "Serves the HTTP API at http://0.0.0.0:80.",
        "not encrypted, as insecure: true allows.",
        "Token token-1 may read and approve.",
        "Serves probes and metrics, without a token, at http://0.0.0.0:90.",
        "the group root.",
    ):
        assert sentence in said
    assert re.search(
        r"Sink out writes .* \(gives up after 7d; only types a\.\*; only event types Reboot; "
        r"skips outdated states; best effort\)\.",
        said,
    )


def test_defaults_are_described_in_sentences(read):
    said = "\n".join(sentences(load(None, {})))
    assert "Finds the metadata service and polls it every 1s" in said
    assert "name this VM (its name is read from instance metadata)" in said
    assert "read-only because there are no tokens; if that port is taken, runs without it." in said
    assert "Serves no HTTP API." in sentences(read("http: {listen: null}"))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("required", "may read; connections without one are refused."),
        ("optional", "may read; other clients need a token, or sign their votes."),
    ],
)
def test_certificates_are_described_in_sentences(read, how, said):
    http = MTLS.replace("}", f", client_certificates: {how}}}")
    told = sentences(
        read(f"{{approvals: {{allow: [{{approver: a, certificate: CN=x}}]}}, http: {{{http}}}}}")
    )
    assert "a may approve, hold and release, proved by the certificate CN=x." in told
    assert f"Anyone with a certificate signed by ca.pem {said}" in told
    assert (
        "Accepts approvals over the control socket, "
        "and over HTTP with a client certificate whose subject is listed." in told
    )
    assert not any("read-only" in one for one in told)


def test_approvals_are_described_in_sentences(read, tail):
    keys = (f"from: {{{TAIL_SOURCE}}}", "answer_strays: true", "dry_run: true", "require: any")
    said = sentences(read(approvals(*keys)))
    assert (
        "Approvals from votes are the lines of /topic; anyone who may publish there is trusted."
        in said
    )
    assert "One approval is enough for all VMs of a scheduled event." in said
    assert "The bridge on the first VM tells Azure; each later one waits 5s longer." in said
    assert "A hold lasts 10m and never stops Azure; an early vote waits 30s for its event." in said
    assert "Dry run: decides and publishes, but tells Azure nothing." in said
    assert any(one.startswith("Publishes refusals") for one in said)
    local = (
        "Other bridges do not know of a hold that is given to this bridge over the control socket"
    )
    assert any(one.startswith(local) for one in said)
    alone = sentences(load(None, {}))
    assert "Accepts approvals over the control socket." in alone
    assert any("approvals.from names no source" in one for one in alone)
    alone = sentences(read(approvals(f"from: {{{TAIL_SOURCE}}}", "leader: none")))
    assert "Every bridge on one of the event's VMs tells Azure immediately." in alone
    assert "A scheduled event is approved when each of its VMs has an approval." in alone


def test_rights_rules_and_reminders_are_described_in_sentences(read, tail):
    entry = f"{{approver: orders, keys: [{{hmac: {WHSEC}}}], event_types: [Freeze], decisions: [approve, hold]}}"
    keys = (
        f"from: {{{TAIL_SOURCE.replace('transport', 'signed')}}}",
        f"allow: [{entry}, {{approver: ops, token: ops, via: http, resources: [web*], all_resources: true}}]",
        "auto: [{event_type: Freeze, max_duration: 10s}]",
        "require: {count: 2}",
        "remind: [1m, 5m]",
    )
    http = "{tokens: [{name: ops, token: x}], webhook_origins: [e.example]}"
    config = read(f"{approvals(*keys)[:-1]}, http: {http}}}")
    said = sentences(config)
    for sentence in (
        "Approvals from votes are the lines of /topic; each one must be signed.",
        "Accepts approvals over the control socket, over HTTP with the token ops, and over HTTP if they are signed.",
        "orders may approve and hold Freeze events, proved by its key.",
        "ops may approve, hold and release, for VMs like web*, for all VMs of an event together, via http only, proved by the token ops.",
        "Nobody else may vote, on any channel.",
        "A scheduled event needs 2 different verified approvers.",
        "Automatically approves scheduled events of type Freeze that take at most 10s (for this VM).",
        "While votes are missing, publishes approval.due 5m and 1m before notBefore.",
        "Accepts CloudEvents webhooks with approvals from e.example.",
    ):
        assert sentence in said
    assert WHSEC not in f"{said} {config!r} {config.model_dump(mode='json', fallback=str)}"
    named = sentences(read(approvals("require: {approvers: [a, b]}")))
    assert "A scheduled event needs approval from each of these verified approvers: a, b." in named


def test_the_sentences_about_traces_name_headers_and_no_secret(read):
    text = "telemetry: {otlp: 'http://otlp.example', insecure: true, headers: {b: '${KEY}', a: x}}"
    said = " ".join(sentences(read(text, KEY="s3cret")))
    assert "Sends traces to http://otlp.example/v1/traces, with the headers a and b," in said
    assert "unencrypted, as insecure: true allows." in said
    assert "s3cret" not in said
    assert "traces" not in " ".join(sentences(read("{}")))


def test_proxies_are_described_in_sentences(read):
    behind = "public_url: https://b.example/seb, trusted_proxies: [127.0.0.1, 10.0.0.0/8]"
    said = sentences(read(f"http: {{tokens: [abc], {behind}}}"))
    assert "Proxies serve it at https://b.example/seb; browsers may use it from there." in said
    assert any(
        "X-Forwarded-For from 127.0.0.1 and 10.0.0.0/8 names the caller" in one for one in said
    )
