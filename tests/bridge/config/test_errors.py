import pytest
from support.config_text import approvals

from bridge.config import ConfigError
from bridge.plugins import Misconfigured


def test_a_bad_configuration_is_misconfigured():
    assert issubclass(ConfigError, Misconfigured)


def test_an_unknown_key_names_the_nearest_right_one(problems):
    assert problems("source:\n  poll_intervall: 1s") == [
        ":2: source.poll_intervall: unknown key; did you mean poll_interval?"
    ]
    assert problems("sink: {}") == [":1: sink: unknown key; did you mean sinks?"]
    assert problems("journal: {xyzzy: 1}") == [
        ":1: journal.xyzzy: unknown key; choose from keep, max_size, newer"
    ]
    assert problems("sinks:\n  a:\n    type: stdout\n    retry: {timout: 1s}") == [
        ":4: sinks.a.retry.timout: unknown key; did you mean timeout?"
    ]
    assert problems("http: {tokens: [{token: abc, scope: [read]}]}") == [
        ":1: http.tokens[0].scope: unknown key; did you mean scopes?"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source: {poll_interval: 1}", "write it like 500ms, 1s, 5m, 24h or 7d"),
        ("source: {scope: mine}", "'mine' is not allowed; it must be 'own' or 'all'"),
        ("source: {vm_name: 12}", "must be text; put it in quotes"),
        ("source: {tags: team}", "must be a list"),
        ("source: {tags: }", "is empty; give it a value, or remove the key"),
        ("source: {labels: {rack: 12}}", "source.labels.rack: must be text; put it in quotes"),
        ("source: [a]", "source: must be a mapping (key: value)"),
        ("journal: {max_size: 256}", "write it like 64KiB, 256MiB or 1GiB"),
        ("stop_grace: ten", "write it like 500ms, 1s, 5m, 24h or 7d"),
        ("http: {insecure: maybe}", "must be true or false"),
        ("http: {tls: {certificate: a.pem}}", "http.tls.key: is missing"),
        ("http: {tokens: abc}", "must be a list"),
        ("http: {tokens: [12]}", "http.tokens[0]: must be a mapping"),
        (
            "http: {tokens: [{name: a, token: b, scopes: [write]}]}",
            "it must be 'read', 'approve' or 'operate'",
        ),
        ("http: {tokens: [{name: a}]}", "http.tokens[0].token: is missing"),
    ],
)
def test_a_wrong_value_is_explained(problems, text, said):
    [found] = problems(text)
    assert said in found
    assert found.startswith(":1: ")


@pytest.mark.parametrize(
    "text",
    [
        "http: {tokens: [{nam: a, token: hunter22}]}",
        "http: {tokens: [hunter22 x]}",
        "http: {tokens: [{name: a, token: {hunter22}}]}",
        "http: {tokens: [hunter22], tls: {hunter22: }",
        "http: {tokens: [*hunter22]}",
        "http: {tokens: [!hunter22]}",
        "http: {tokens: [hunter22: a: b]}",
        "http: {tokens: ['hunter22]}",
        "http: {tokens: [@hunter22]}",
        "http: {tokens: ['hunter22${']}",
        "http: {tokens: ['hunter22', '${GONE}']}",
        "source: {scope: '${SECRET}'}",
        "source: {scope: {password: hunter22}}",
        "source: {poll_interval: 'x${SECRET}'}",
        "source: {endpoint: '${SECRET}'}",
        "http: {listen: '${SECRET}'}",
        "sinks: {a: {type: '${SECRET}'}}",
    ],
)
def test_secrets_do_not_appear_in_errors(problems, text):
    found = problems(text, SECRET="hunter22")
    assert found
    assert "hunter22" not in str(found)


def test_a_limit_has_the_unit_of_its_key(problems, tail):
    [number] = problems(approvals("require: {count: 0}"))
    assert number.endswith("count: must be at least 1")
    [duration] = problems("source: {degraded_after: 0s}")
    assert duration.endswith("degraded_after: must be at least 1s")
    [names] = problems(approvals("require: {approvers: []}"))
    assert names.endswith("approvers: must not be empty")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("https://me:hunter22@b.example/x", "https://***@b.example/x"),
        ("me:hunter22@b.example", "***@b.example"),
        ("mqtt://hunter22@b.example", "mqtt://***@b.example"),
        ("me:hunt@er22@b.example", "***@b.example"),
    ],
)
def test_what_is_in_front_of_an_at_sign_in_an_address_is_not_repeated(problems, written, shown):
    [found] = problems(f"sinks: {{a: {{type: mqtt, host: '{written}'}}}}")
    assert f"'{shown}' is not a host" in found


def test_other_text_with_an_at_sign_is_shown(problems):
    [found] = problems("source: {scope: me@example}")
    assert "'me@example' is not allowed" in found
