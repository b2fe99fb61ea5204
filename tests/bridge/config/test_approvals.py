import pytest
from support.config_text import MTLS, WHSEC, approvals

from bridge.config import load


def test_approvals_have_the_defaults_of_the_contract():
    found = load(None, {}).approvals
    assert (found.sources, found.require, found.leader) == ({}, "each-resource", "first-resource")
    assert (found.takeover_after, found.early_grace, found.hold_timeout) == (5, 30, 600)
    assert (found.lookback, found.margin) == (3600, 5)
    assert (found.answer_strays, found.dry_run) == (False, False)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("require: both", "must be each-resource, any, {count: N} or {approvers"),
        ("leader: me", "'first-resource' or 'none'"),
        ("takeover_after: soon", "'soon' is not a duration"),
        ("dryrun: true", "did you mean dry_run?"),
        ("require: {count: 0}", "approvals.require.count: must be at least 1"),
        ("require: {count: two}", "approvals.require.count: must be a whole number"),
        ("require: {count: 1, approvers: [a]}", "has both count and approvers"),
        ("require: {approvers: []}", "approvals.require.approvers: "),
        ("require: 2", "{count: N} or {approvers: [NAME, …]}"),
        ("allow: [{}]", "approvals.allow[0].approver: is missing"),
        ("allow: [{approver: a, key: x}]", "approvals.allow[0].key: unknown key; did you mean keys?"),
        ("allow: [{approver: a, keys: [{}]}]", "approvals.allow[0].keys[0]: needs either hmac or"),
        ("allow: [{approver: a, keys: [{hmac: x}]}]", "starts with whsec_"),
        (f"allow: [{{approver: a, keys: [{{hmac: {WHSEC}}}]}}, {{approver: b, keys: [{{hmac: {WHSEC}}}]}}]",
         "allow: a and b have the same key, token or certificate"),
        ("auto: [{}]", "approvals.auto[0]: needs at least one of event_source"),
        ("auto: [{event_type: Freeze, max_duration: long}]", "approvals.auto[0].max_duration: 'long'"),
        ("remind: [0s]", "approvals.remind: must be at most 10 durations, each more than 0s"),
        ("remind: 5m", "approvals.remind: must be a list"),
    ],
)  # fmt: skip
def test_errors_in_approvals_are_explained(problems, tail, keys, said):
    [found] = problems(approvals(keys))
    assert said in found


def test_one_certificate_has_one_name(problems):
    allow = "[{approver: a, certificate: CN=x}, {approver: b, certificate: CN=x}]"
    [found] = problems(f"{{approvals: {{allow: {allow}}}, http: {{{MTLS}}}}}")
    assert found.endswith("allow: a and b have the same key, token or certificate")
