import pytest
from support.config_text import DESK, MTLS, approvals


def test_an_approvers_token_must_be_one_that_may_approve(problems, read):
    entry = "approvals: {allow: [{approver: a, token: t}]}"
    [found] = problems(f"{{{entry}, http: {{tokens: [{{name: t, token: x, scopes: [read]}}]}}}}")
    assert found.endswith("approvals.allow[0].token: the token t has no scope approve")
    assert read(f"{{{entry}, http: {{tokens: [{{name: t, token: x}}]}}}}").approvals.allow


@pytest.mark.parametrize(
    ("entry", "http", "said"),
    [
        ("certificate: CN=a", "tokens: [x]", "allow[0].certificate: nobody asks for certificates"),
        ("certificate: CN=a", f"listen: null, {MTLS}", "nobody asks for certificates"),
        ("certificate: CN=a, via: control", MTLS, "allow[0].via: 'control' shows no certificates"),
        ("certificate: orders", MTLS, "allow[0].certificate: must be the subject of a certificate"),
        ("via: http", "tls: {certificate: a, key: b, client_certificates: optional}",
         "http.tls: client_certificates is of no use without client_ca"),
        ("via: http", "tls: {certificate: a, key: b, client_ca: c, client_certificates: never}",
         "http.tls.client_certificates: 'never' is not allowed"),
    ],
)  # fmt: skip
def test_certificates_that_would_prove_nobody_are_refused(problems, entry, http, said):
    [found] = problems(f"{{approvals: {{allow: [{{approver: a, {entry}}}]}}, http: {{{http}}}}}")
    assert said in found


def test_an_approver_that_is_asked_for_may_be_a_channel_or_the_operators_own_rule(read, tail):
    allow = (
        "allow: [{approver: a, via: desk}, {approver: b, via: http}, {approver: c, via: control}]"
    )
    wanted = "require: {approvers: [a, b, c, auto, 'sink:drain']}"
    assert len(read(approvals(f"from: {{{DESK}}}", allow, wanted)).approvals.allow) == 3


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("allow: [{approver: a, token: t}]", "approvals.allow[0].token: 't' is no name in http.tokens"),
        ("allow: [{approver: a, via: htp}]",
         "approvals.allow[0].via: 'htp' is no channel; there are control, http"),
        ("allow: [{approver: a}], require: {approvers: [a, uid 0]}",
         "approvals.require: uid 0 has no entry in approvals.allow by which it may approve"),
        ("allow: [{approver: a, decisions: [hold]}], require: {approvers: [a]}",
         "approvals.require: a has no entry in approvals.allow by which it may approve"),
    ],
)  # fmt: skip
def test_rights_that_nobody_could_use_are_refused(problems, tail, keys, said):
    [found] = problems(approvals(keys))
    assert said in found
