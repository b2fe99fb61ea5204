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


def test_traces_go_to_the_path_of_otlp_unless_one_is_given(read):
    for given, used in (
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://otlp.example/", "https://otlp.example/v1/traces"),
        ("https://otlp.example/x/v1/traces", "https://otlp.example/x/v1/traces"),
    ):
        assert read(f"telemetry: {{otlp: '{given}'}}").telemetry.otlp == used
    assert read("telemetry: null").telemetry.otlp is None
    assert read("telemetry: {otlp: 'http://otlp.example', insecure: true}").telemetry.insecure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{otlp: 4318}", "otlp"),
        ("{otlp: 'grpc://127.0.0.1:4317'}", "is not a URL like http://127.0.0.1:4318"),
        ("{otlp: 'http://user:s3cret@127.0.0.1'}", "is not a URL like"),
        ("{otlp: 'http://127.0.0.1/?a=b'}", "is not a URL like"),
        ("{otlp: 'http://otlp.example:4318'}", "otlp needs https or insecure: true"),
        ("{headers: {a: b}}", "headers have no effect without otlp"),
        ("{otlp: 'http://127.0.0.1', headers: {'a b': c}}", "must be printable ASCII"),
        ("{otlp: 'http://127.0.0.1', headers: {a: \"b\\nc\"}}", "must be printable ASCII"),
        ("{otpl: 'http://127.0.0.1'}", "otlp"),
    ],
)
def test_where_traces_cannot_or_may_not_go_is_an_error(problems, text, said):
    found = problems(f"telemetry: {text}")
    assert len(found) == 1
    assert said in found[0]
    assert "s3cret" not in found[0]


def test_traces_without_their_extra_say_what_to_install(problems, monkeypatch):
    monkeypatch.setattr("bridge.config.values.find_spec", lambda _: None)
    [said] = problems("telemetry: {otlp: 'http://127.0.0.1:4318'}")
    assert "pip install 'scheduled-events-bridge[telemetry]'" in said


def test_the_environment_of_opentelemetry_is_not_read(read):
    config = read("{}", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert config.telemetry.otlp is None


BEHIND = "http: {tokens: [abc], public_url: https://Bridge.Example:443/seb/"


def test_a_public_url_is_one_or_several(read):
    (url,) = read(f"{BEHIND}}}").http.public_url
    assert (url.origin, url.host, url.path) == ("https://bridge.example", "bridge.example", "/seb")
    several = "[https://a.example:8443, 'https://[2001:db8::1]/b']"
    found = read(f"http: {{tokens: [abc], public_url: {several}}}").http.public_url
    assert [str(url) for url in found] == ["https://a.example:8443", "https://[2001:db8::1]/b"]
    assert read("http: {public_url: null}").http.public_url == ()


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ("{public_url: https://b.example}", "public_url needs tokens"),
        ("{tokens: [a], public_url: http://b.example}", "use https, or insecure: true"),
        ("{tokens: [a], public_url: https://b.example, listen: null}", "no effect without listen"),
        ("{trusted_proxies: [10.0.0.1], listen: null}", "no effect without listen"),
        ("{tokens: [a], public_url: b.example}", "http.public_url: 'b.example' is not a public"),
        ("{tokens: [a], public_url: 'https://b.example/?a'}", "is not a public URL"),
        ("{tokens: [a], public_url: 'https://me@b.example'}", "is not a public URL"),
        ("{trusted_proxies: [proxy.example]}", "'proxy.example' is not an address or a network"),
        ("{trusted_proxies: [10.0.0.1/8]}", "http.trusted_proxies[0]: '10.0.0.1/8' is not"),
    ],
)
def test_a_proxy_that_could_not_work_is_refused(problems, http, said):
    assert said in problems(f"http: {http}")[0]


def test_a_public_url_without_tls_is_a_choice(read):
    http = "{tokens: [a], public_url: http://b.example, insecure: true, trusted_proxies: ['::1']}"
    assert [str(one) for one in read(f"http: {http}").http.trusted_proxies] == ["::1/128"]
