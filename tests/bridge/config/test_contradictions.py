import pytest
from support.config_text import MTLS, TAIL_SOURCE, WHSEC, approvals

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
        ("allow: [{approver: a, token: t}]", "approvals.allow[0].token: 't' is not in http.tokens"),
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


def test_check_warns_about_names_that_anyone_can_claim(read, tail):
    entries = f"{{approver: bare}}, {{approver: shut, via: http}}, {{approver: k, keys: [{{hmac: {WHSEC}}}]}}"
    claim = (
        "Anyone who may publish to votes may vote as bare: "
        "its entry requires no proof and names no via."
    )

    def told(*keys, trust="transport"):
        source = f"from: {{{TAIL_SOURCE.replace('transport', trust)}}}"
        found = describe(read(approvals(source, f"allow: [{entries}]", *keys)))
        return [one for one in found if one.startswith("Anyone who may publish")]

    assert told() == [claim]
    assert told(trust="signed") == []
    assert told("require: {count: 1}") == [], "such votes do not count there"


def test_check_says_whose_votes_would_not_count(read, tail):
    bus = f"from: {{{TAIL_SOURCE}}}"
    lost = (
        "From votes, only signed approvals count, because the policy requires verified approvers."
    )
    assert lost in describe(read(approvals(bus, "require: {count: 2}")))
    assert lost not in describe(read(approvals(bus, "require: any")))
    nobody = (
        "On the control socket, only signed votes count: no entry allows a user of this machine. "
        "For root, add {approver: uid 0, via: control}."
    )
    assert nobody in describe(read(approvals("allow: [{approver: a}]")))
    assert nobody in describe(read(approvals("allow: [{approver: uid 0, via: http}]")))
    assert nobody not in describe(read(approvals("allow: [{approver: uid 0}]")))
    assert nobody not in describe(read(approvals("dry_run: true")))
