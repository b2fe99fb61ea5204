from pathlib import Path

import pytest

from bridge.common.fields import Secret
from bridge.config import Listen, load


def test_every_key_is_read(read, tmp_path):
    config = read(f"""
        source:
          endpoint: http://127.0.0.1:8081/
          api_version: 2017-03-01
          poll_interval: 500ms
          scope: all
          vm_name: FrontEnd_IN_0
          degraded_after: 2m
          snapshot_interval: 12h
          tags: [team]
          labels: {{rack: "12", country: no}}
        cloudevents: {{source: /my/source}}
        state_dir: {tmp_path}
        journal: {{keep: 7d, max_size: 64MiB, newer: set-aside}}
        stop_grace: 0
        control_group: root
        sinks:
          out: {{type: stdout, required: false, only: {{event_types: [Reboot]}}}}
          disk: {{type: file, path: {tmp_path}/events.jsonl}}
        approvals: {{margin: 10s}}
        http:
          listen: "[::1]:8080"
          probes_listen: 0.0.0.0:9090
          tokens: [abc, {{name: ops, token: def, scopes: [read]}}, {{file: /run/token}}]
          tls: {{certificate: /etc/cert.pem, key: /etc/key.pem}}
          insecure: on
    """)
    source = config.source
    assert (source.endpoint, source.api_version) == ("http://127.0.0.1:8081", "2017-03-01")
    assert (source.poll_interval, source.scope, source.vm_name) == (0.5, "all", "FrontEnd_IN_0")
    assert (source.degraded_after, source.snapshot_interval) == (120, 43200)
    assert (source.tags, source.labels) == (("team",), {"rack": "12", "country": "no"})
    assert config.cloudevents.source == "/my/source"
    assert config.state_dir == tmp_path
    assert (config.journal.keep, config.journal.max_size) == (604800, 64 * 1024**2)
    assert config.journal.newer == "set-aside"
    assert (config.stop_grace, config.control_group, config.approvals.margin) == (0, "root", 10)
    assert [(name, sink.type) for name, sink in config.sinks.items()] == [
        ("out", "stdout"),
        ("disk", "file"),
    ]
    assert not config.sinks["out"].required
    assert config.http.listen == Listen("::1", 8080)
    assert config.http.probes_listen == Listen("0.0.0.0", 9090)
    assert [(token.name, token.token, token.scopes) for token in config.http.tokens] == [
        ("token-1", Secret("abc"), ("read", "approve")),
        ("ops", Secret("def"), ("read",)),
        ("token-3", Secret(path=Path("/run/token")), ("read", "approve")),
    ]
    assert config.http.tls is not None
    assert config.http.insecure


def test_a_default_address_is_told_apart_from_a_configured_one(read):
    assert load(None, {}).http.listen_is_default
    assert read("http: {tokens: [abc]}").http.listen_is_default
    assert not read("http: {listen: 127.0.0.1:17245}").http.listen_is_default


def test_http_can_be_off(read):
    assert read("http: {listen: null}").http.listen is None


def test_an_address_beyond_loopback_needs_tokens_and_tls_or_insecure(read, problems):
    open_to_all = "listen: 0.0.0.0:80"
    tls = "tls: {certificate: a, key: b}"
    assert "needs tokens" in problems(f"http: {{{open_to_all}, {tls}}}")[0]
    assert "needs tokens" in problems(f"http: {{{open_to_all}, insecure: true}}")[0]
    assert "needs tls, or insecure: true" in problems(f"http: {{{open_to_all}, tokens: [abc]}}")[0]
    assert read(f"http: {{{open_to_all}, tokens: [abc], {tls}}}")
    assert read(f"http: {{{open_to_all}, tokens: [abc], insecure: true}}")
    assert read(f"http: {{{open_to_all}, tls: {{certificate: a, key: b, client_ca: c}}}}")
    for loopback in ("127.0.0.2:80", "'[::1]:80'", "localhost:80"):
        assert read(f"http: {{listen: {loopback}}}")
    for other in ("'[::]:80'", "vm.example:80", "10.0.0.4:80"):
        assert problems(f"http: {{listen: {other}}}")


def test_probes_may_listen_anywhere(read):
    assert read("http: {probes_listen: 0.0.0.0:9090}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: {poll_interval: 199ms}", "must be at least 200ms: Azure allows"),
        ("source: {degraded_after: 0s}", "must be at least 1s"),
        ("source: {snapshot_interval: 0s}", "must be at least 1s"),
        ("journal: {max_size: 1KiB}", "must be at least 1MiB"),
        ("http: {listen: 127.0.0.1:80, probes_listen: 127.0.0.1:80}", "use two ports"),
        ("http: {tokens: [{name: a, token: b, scopes: []}]}", "http.tokens[0].scopes:"),
        ("http: {tokens: [{name: a, token: b}, {name: a, token: c}]}", "the same name"),
    ],
)
def test_errors_in_a_section_are_explained(problems, text, said):
    [found] = problems(text)
    assert said in found
    assert found.startswith(":1: ")
