import pytest
from support.config_text import MTLS, TAIL_SOURCE, WHSEC, approvals

from bridge.config.contradictions import warnings, weak_tokens, without_operate
from bridge.config.describe import describe


def test_an_approvers_token_must_be_one_that_may_approve(problems, read):
    entry = "approvals: {allow: [{approver: a, token: t}]}"
    [found] = problems(f"{{{entry}, http: {{tokens: [{{name: t, token: x, scopes: [read]}}]}}}}")
    assert found.endswith("approvals.allow[0].token: the token t lacks the scope approve")
    assert read(f"{{{entry}, http: {{tokens: [{{name: t, token: x}}]}}}}").approvals.allow


@pytest.mark.parametrize(
    ("entry", "http", "said"),
    [
        ("certificate: CN=a", "tokens: [x]", "allow[0].certificate: client certificates need http.listen"),
        ("certificate: CN=a", f"listen: null, {MTLS}", "client certificates need http.listen"),
        ("certificate: CN=a, via: control", MTLS, "allow[0].via: 'control' has no certificates"),
        ("certificate: orders", MTLS, "allow[0].certificate: must be the subject of a certificate"),
        ("via: http", "tls: {certificate: a, key: b, client_certificates: optional}",
         "http.tls: client_certificates has no effect without client_ca"),
        ("via: http", "tls: {certificate: a, key: b, client_ca: c, client_certificates: never}",
         "http.tls.client_certificates: 'never' is not allowed"),
    ],
)  # fmt: skip
def test_certificates_that_prove_no_one_are_refused(problems, entry, http, said):
    [found] = problems(f"{{approvals: {{allow: [{{approver: a, {entry}}}]}}, http: {{{http}}}}}")
    assert said in found


def test_a_required_approver_may_be_a_sink_or_an_auto_rule(read, tail):
    allow = (
        "allow: [{approver: a, via: votes}, {approver: b, via: http}, {approver: c, via: control}]"
    )
    wanted = "require: {approvers: [a, b, c, auto, 'sink:drain']}"
    assert len(read(approvals(f"from: {{{TAIL_SOURCE}}}", allow, wanted)).approvals.allow) == 3


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("allow: [{approver: a, token: s3cr3t}]",
         "approvals.allow[0].token: is not the name of a token in http.tokens (none)"),
        ("allow: [{approver: a, via: htp}]",
         "approvals.allow[0].via: 'htp' is not a channel; choose from control, http"),
        ("allow: [{approver: a}], require: {approvers: [a, uid 0]}",
         "approvals.require: uid 0 must approve, but no entry in approvals.allow lets it"),
        ("allow: [{approver: a, decisions: [hold]}], require: {approvers: [a]}",
         "approvals.require: a must approve, but no entry in approvals.allow lets it"),
    ],
)  # fmt: skip
def test_rights_that_no_one_can_use_are_refused(problems, tail, keys, said):
    [found] = problems(approvals(keys))
    assert said in found
    assert "s3cr3t" not in found, "it may be a secret"


KEY = f"keys: [{{hmac: {WHSEC}}}]"


def with_tokens(allow, *tokens, scopes="[read, approve]"):
    named = ", ".join(f"{{name: {name}, token: x, scopes: {scopes}}}" for name in tokens)
    return f"{{approvals: {{allow: [{allow}]}}, http: {{tokens: [{named}], {MTLS}}}}}"


@pytest.mark.parametrize("proof", [KEY, "certificate: CN=a"])
def test_a_token_cannot_have_the_name_of_an_approver_with_a_key(problems, read, proof):
    [found] = problems(with_tokens(f"{{approver: a, {proof}}}", "b", "a"))
    assert "http.tokens[1].name: a is an approver with a key or certificate" in found
    for good in (
        with_tokens(f"{{approver: a, {proof}}}", "b"),
        with_tokens(f"{{approver: a, {proof}}}", "a", scopes="[read, operate]"),
        with_tokens(f"{{approver: a, {proof}, token: a}}", "a"),
        with_tokens("{approver: a, via: http}", "a"),
    ):
        assert read(good)


BUS = "from: {bus: {type: mqtt, host: h, topic: t, trust: %s}}"
SIGNED, TRUSTED = BUS % "signed", BUS % "transport"
TOKEN = "http: {tokens: [{name: t, token: x, scopes: [approve, operate]}]}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (approvals("require: {approvers: [a, uid 0]}"), "no key, token or certificate proves a"),
        (approvals(TRUSTED, "require: {approvers: [a]}, allow: [{approver: a}]"),
         "no key, token or certificate proves a"),
        (approvals("require: {approvers: [a, auto, 'sink:a']}", f"allow: [{{approver: a, {KEY}}}]"),
         "no key, token or certificate proves auto and sink:a"),
        (approvals("require: {count: 3}"), "it needs 3 verified approvers, and there are: nobody"),
        (approvals("require: {count: 2}", f"allow: [{{approver: a, {KEY}}}, {{approver: b}}]"),
         "it needs 2 verified approvers, and there are: a"),
        (approvals("require: {count: 2}", f"allow: [{{approver: a, {KEY}}}, "
         f"{{approver: b, keys: [{{hmac: {WHSEC[:-1]}B}}], decisions: [hold]}}]"),
         "it needs 2 verified approvers, and there are: a"),
        (approvals("require: any", "allow: [{approver: a}]"), "no entry in approvals.allow can"),
        (approvals(TRUSTED, "allow: [{approver: a, decisions: [hold]}]"), "no entry in approvals.allow"),
        (f"{{approvals: {{require: {{count: 1}}, allow: [{{approver: b}}]}}, {TOKEN}}}",
         "it needs 1 verified approvers, and there are: nobody"),
    ],
)  # fmt: skip
def test_check_warns_of_a_policy_that_nobody_can_satisfy(read, text, why):
    [found] = [one for one in warnings(read(text)) if one.startswith("Nobody can satisfy")]
    assert found.startswith(f"Nobody can satisfy approvals.require: {why}")


@pytest.mark.parametrize(
    "text",
    [
        approvals("dry_run: true"),
        approvals("require: {count: 2}"),
        approvals("require: {approvers: [uid 0, local]}"),
        approvals(TRUSTED, "allow: [{approver: a}]"),
        approvals(SIGNED, "require: {approvers: [a]}", f"allow: [{{approver: a, {KEY}}}]"),
        approvals("require: {approvers: [auto]}", "auto: [{event_source: User}]"),
        approvals("require: {count: 1}", sinks="{a: {type: command, argv: [x], then: approve}}"),
        approvals("require: any", "allow: [{approver: uid 0, via: control}]"),
        f"{{approvals: {{require: {{approvers: [t]}}}}, {TOKEN}}}",
        f"{{approvals: {{require: {{approvers: [b]}}, allow: [{{approver: b, token: t}}]}}, {TOKEN}}}",
        f"{{approvals: {{require: {{approvers: [CN=b]}}, allow: [{{approver: CN=b}}]}}, http: {{{MTLS}}}}}",
        "{control_group: root, approvals: {require: {count: 9}}}",
    ],
)
def test_check_does_not_warn_of_a_policy_that_somebody_can_satisfy(read, text):
    assert [one for one in warnings(read(text)) if one.startswith("Nobody")] == []


def test_a_source_of_your_own_may_prove_any_name(read, tail):
    source = f"from: {{{TAIL_SOURCE}}}"
    found = warnings(read(approvals(source, "require: {approvers: [a]}", "allow: [{approver: a}]")))
    assert not any(one.startswith("Nobody") for one in found)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("{approver: a, resources: [web, '*']}", "approvals.allow[0].resources limits nothing"),
        ("{approver: a, event_types: ['*']}", "approvals.allow[0].event_types limits nothing"),
        ("{approver: a, decisions: [hold]}, {approver: a}",
         "The limits of approvals.allow[0] limit nothing: approvals.allow[1] lets a do the same"),
        (f"{{approver: a}}, {{approver: a, {KEY}, event_types: [Freeze], via: http}}",
         "The limits of approvals.allow[1] limit nothing: approvals.allow[0] lets a do the same"),
        ("{approver: a, decisions: [hold]}, {approver: b}",
         "The limits of a limit nothing on bus: anyone who may publish there may vote as b instead"),
        ("{approver: a, resources: [x]}, {approver: b, via: bus}", "limit nothing on bus"),
        ("{approver: a, via: bus}, {approver: b}", None),
        ("{approver: a, via: bus, resources: [x]}, {approver: b, via: bus}", "limit nothing on bus"),
        (f"{{approver: a, decisions: [hold]}}, {{approver: b, {KEY}}}", None),
        (f"{{approver: a, decisions: [hold]}}, {{approver: a, {KEY}}}", None),
        ("{approver: a, decisions: [hold]}, {approver: b, via: http}", None),
        ("{approver: a, decisions: [hold]}, {approver: a, event_types: [Freeze]}", None),
        ("{approver: a, event_types: [Freeze]}, {approver: a, event_types: [Reboot]}", None),
    ],
)  # fmt: skip
def test_check_warns_of_limits_that_limit_nothing(read, entries, said):
    found = [
        one for one in warnings(read(approvals(TRUSTED, f"allow: [{entries}]"))) if "nothing" in one
    ]
    assert len(found) == (said is not None)
    assert all(said in one for one in found)


def test_check_names_the_tokens_that_may_vote_but_not_operate(read):
    http = (
        "{tokens: [a, {name: b, token: x, scopes: [read]}, {name: c, token: x, scopes: [operate]}]}"
    )
    config = read(f"{{http: {http}}}")
    assert [token.name for token in without_operate(config.http)] == ["token-1"]
    [found] = [one for one in warnings(config) if "operate" in one]
    assert found.startswith("Token token-1 may read and approve, but not drop or replay")


def test_warnings_come_before_everything_else(read):
    found = describe(read(approvals("require: {approvers: [a]}")))
    assert len(found["warnings"]) == 1
    assert next(iter(found)) == "warnings"


def test_check_warns_about_names_that_anyone_can_claim(read, tail):
    entries = f"{{approver: bare}}, {{approver: shut, via: http}}, {{approver: k, keys: [{{hmac: {WHSEC}}}]}}"
    claim = (
        "Anyone who may publish to votes may vote as bare: "
        "its entry requires no proof and names no via."
    )

    def told(*keys, trust="transport"):
        source = f"from: {{{TAIL_SOURCE.replace('transport', trust)}}}"
        found = warnings(read(approvals(source, f"allow: [{entries}]", *keys)))
        return [one for one in found if one.startswith("Anyone who may publish")]

    assert told() == [claim]
    assert told(trust="signed") == []
    assert told("require: {count: 1}") == [], "such votes do not count there"


def test_check_says_whose_votes_would_not_count(read, tail):
    bus = f"from: {{{TAIL_SOURCE}}}"
    lost = (
        "From votes, only signed approvals count, because the policy requires verified approvers."
    )
    assert lost in list(warnings(read(approvals(bus, "require: {count: 2}"))))
    assert lost not in list(warnings(read(approvals(bus, "require: any"))))
    alone = (
        "On the control socket, only signed votes count: no entry allows a user of this machine."
    )
    nobody = f"{alone} For root, add {{approver: uid 0, via: control}}."
    assert nobody in list(warnings(read(approvals("allow: [{approver: a}]"))))
    assert nobody in list(warnings(read(approvals("allow: [{approver: uid 0, via: http}]"))))
    assert nobody not in list(warnings(read(approvals("allow: [{approver: uid 0}]"))))
    assert nobody not in list(warnings(read(approvals("dry_run: true"))))
    named = approvals("require: {approvers: [a]}", "allow: [{approver: a}]")
    assert alone in list(warnings(read(named))), "an entry for root would not help"


@pytest.mark.parametrize(
    ("allow", "warned"),
    [
        ("[]", False),
        ("[{approver: other}]", True),
        ("[{approver: ops, via: control}]", True),
        ("[{approver: ops}]", False),
        ("[{approver: ops, decisions: [hold]}]", False),
        ("[{approver: duty, token: ops}]", False),
    ],
)
def test_check_warns_about_a_token_whose_votes_are_refused(read, allow, warned):
    tokens = "[{name: ops, token: x, scopes: [approve]}, {name: reader, token: y, scopes: [read]}]"
    found = warnings(read(f"{{http: {{tokens: {tokens}}}, approvals: {{allow: {allow}}}}}"))
    told = [
        one for one in found if one.startswith("Token ops has the scope approve, but its votes")
    ]
    assert len(told) == warned


def test_check_warns_about_tokens_that_can_be_guessed_or_not_be_read(read, tmp_path):
    good = tmp_path / "good"
    good.write_text("0123456789abcdef\n")
    short = tmp_path / "short"
    short.write_text("s3cret")
    files = f"{{file: {good}}}, {{file: {short}}}, {{file: {tmp_path}/nothing}}"
    config = read(f"http: {{tokens: [0123456789abcdefg, {files}, little]}}")
    found = list(weak_tokens(config.http))
    assert [one.partition(":")[0] for one in found] == [f"http.tokens[{n}]" for n in (2, 3, 4)]
    assert f"{tmp_path}/nothing cannot be read (No such file or directory)" in found[1]
    assert "fewer than 16 characters" in found[0]
    assert not any(secret in "".join(found) for secret in ("s3cret", "little"))


def test_check_warns_of_a_proxy_that_hides_its_callers_and_of_trusting_everyone(read):
    hidden = read("http: {tokens: [abc], public_url: https://b.example}")
    assert any("see the address of the proxy" in one for one in warnings(hidden))
    known = "http: {tokens: [abc], public_url: https://b.example, trusted_proxies: [127.0.0.1]}"
    assert not any("prox" in one for one in warnings(read(known)))
    assert any(
        "trusts everyone (::/0)" in one
        for one in warnings(read("http: {trusted_proxies: ['::/0']}"))
    )
