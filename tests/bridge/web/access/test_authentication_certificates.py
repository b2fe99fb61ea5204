"""What the holder of a client certificate may do."""

import pytest
from support.client_certificates import (
    BILLING,
    EVENT_ID,
    OPS,
    ORDERS,
    PATH,
    TOKENS,
    ask,
    certified_polls,
    standing,
    tls,
    vote,
)
from support.guarded_bridge import audits
from support.prometheus import parse, value
from support.signing import Signer

from bridge.web.access.certificates import Certificate


@pytest.mark.parametrize(
    ("entry", "approver"),
    [
        ({"approver": ORDERS, "via": "http"}, ORDERS),
        ({"approver": ORDERS}, ORDERS),
        ({"approver": "orders", "certificate": ORDERS}, "orders"),
    ],
    ids=["subject via http", "subject", "named"],
)
async def test_a_listed_subject_is_the_approver_and_verified(tmp_path, files, entry, approver):
    async with certified_polls(tmp_path, files, allow=[entry]) as made:
        status, body = await vote(made, files, files.orders)
        assert (status, body["outcomes"][0]["outcome"]) == (202, "granted")
        assert await standing(made) == [(approver, True, "http")]
        assert made.told == [[EVENT_ID]]
        _, told = await ask(made, files, files.orders, "GET", f"{PATH}/{body['approvalId']}")
        assert told["outcomes"][-1]["data"]["approver"] == approver
        assert told["outcomes"][-1]["data"]["verified"] is True


@pytest.mark.parametrize(
    "allow",
    [
        [],
        [{"approver": ORDERS}],
        [{"approver": "billing", "via": "http"}],
        [{"approver": BILLING.lower()}],
        [{"approver": BILLING, "via": "control"}],
    ],
    ids=["nobody", "another", "its common name", "another case", "another authenticator"],
)
async def test_a_subject_that_is_not_listed_may_read_and_not_vote(tmp_path, files, allow, caplog):
    async with certified_polls(tmp_path, files, allow=allow) as made:
        for _ in range(3):
            status, problem = await vote(made, files, files.billing)
            assert (status, problem["reason"]) == (403, "unauthorized")
            assert problem["detail"] == f"The certificate of {BILLING} is not in approvals.allow."
        assert (await standing(made), made.told) == ([], [])
        status, found = await ask(made, files, files.billing, "GET", "/api/v1/events")
        assert (status, len(found["events"])) == (200, 1)
        _, text = await ask(made, files, files.billing, "GET", "/metrics")
        assert value(parse(text), "seb_certificates_refused_total") == 3
        assert value(parse(text), "seb_tokens_refused_total") == 0
        [audit] = await audits(made.served)
        assert audit["action"] == "certificate.refused"
        assert audit["actor"] == BILLING
    (said,) = [r for r in caplog.records if r.message == "http.certificate_refused"]
    assert (said.actor, said.count) == (BILLING, 1)


async def test_a_certificate_cannot_vote_under_another_name(tmp_path, files):
    async with certified_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        status, problem = await vote(made, files, files.orders, approver="orders")
        assert (status, problem["reason"]) == (403, "unauthorized")
        assert (await standing(made), made.told) == ([], [])
        assert (await vote(made, files, files.orders, approver=ORDERS))[0] == 202


async def test_a_certificate_has_the_rights_of_its_entry(tmp_path, files):
    entry = {"approver": "orders", "certificate": ORDERS, "decisions": ["hold"]}
    async with certified_polls(tmp_path, files, allow=[entry]) as made:
        status, problem = await vote(made, files, files.orders)
        assert (status, problem["detail"]) == (
            403,
            "This vote does not count: orders may not vote approve.",
        )
        assert (await vote(made, files, files.orders, decision="hold"))[0] == 202
        assert made.told == []


async def test_a_certificate_allows_only_reading_and_voting(tmp_path, files):
    async with certified_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        for method, path in (
            ("POST", "/api/v1/sinks/bus/replay"),
            ("DELETE", "/api/v1/dead-letters/bus:1"),
            ("POST", "/api/v1/drills"),
        ):
            status, problem = await ask(made, files, files.orders, method, path)
            assert status == 403
            assert problem["detail"].endswith("this needs the scope operate.")


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        ([], "This needs a client certificate."),
        (TOKENS, "This needs a token (Authorization: Bearer TOKEN) or a client certificate."),
    ],
)
async def test_without_a_certificate_reading_and_voting_need_a_token(
    tmp_path, files, tokens, sentence
):
    async with certified_polls(tmp_path, files, http={"tls": tls(files), "tokens": tokens}) as made:
        for status, problem in (
            await vote(made, files, None),
            await ask(made, files, None, "GET", "/api/v1/events"),
            await ask(made, files, None, "GET", "/readyz"),
        ):
            assert (status, problem["detail"]) == (401, sentence)
        assert (await vote(made, files, None, OPS))[0] == (202 if tokens else 401)
        assert made.told == ([[EVENT_ID]] if tokens else [])


async def test_beside_a_certificate_the_token_decides(tmp_path, files):
    allow = [{"approver": ORDERS}, {"approver": "ops"}]
    http = {"tls": tls(files), "tokens": TOKENS}
    async with certified_polls(tmp_path, files, http=http, allow=allow, dry_run=True) as made:
        wrong = {"Authorization": "Bearer wrong"}
        assert (await vote(made, files, files.orders, wrong))[0] == 401
        assert await standing(made) == []
        assert (await vote(made, files, files.orders, OPS))[0] == 202
        assert await standing(made) == [("ops", True, "http")]


async def test_a_token_and_a_certificate_of_the_same_name_are_different_callers(tmp_path, files):
    allow = [{"approver": "boss", "token": ORDERS}, {"approver": BILLING}]
    http = {"tls": tls(files), "tokens": [{"name": ORDERS, "token": "x"}]}
    async with certified_polls(tmp_path, files, http=http, allow=allow) as made:
        assert (await vote(made, files, files.orders))[0] == 403
        assert (await standing(made), made.told) == ([], [])


async def test_beside_a_certificate_the_signature_decides(tmp_path, files):
    signer = Signer("signer")
    allow = [{"approver": ORDERS}, signer.entry()]
    async with certified_polls(tmp_path, files, allow=allow, dry_run=True) as made:
        given = signer.delivery(EVENT_ID)
        headers = {name: said.decode() for name, said in given.headers}
        headers["Content-Type"] = "application/json"
        for body, status in ((given.body + b" ", 401), (given.body, 202)):
            found = await ask(made, files, files.orders, "POST", PATH, data=body, headers=headers)
            assert found[0] == status
        assert await standing(made) == [("signer", True, "http")]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (Certificate(ORDERS, 0.0), "has expired"),
        (Certificate("", 2.0**33), "needs a subject of 1 to 512 characters"),
        (Certificate(f"CN={'x' * 510}", 2.0**33), "needs a subject of 1 to 512 characters"),
    ],
    ids=["expired", "nameless", "endless"],
)
async def test_a_certificate_that_expired_or_has_no_subject_is_refused(
    tmp_path, files, monkeypatch, shown, said
):
    async with certified_polls(tmp_path, files, allow=[{"approver": ORDERS}]) as made:
        monkeypatch.setattr("bridge.web.access.certificates.read", lambda _: shown)
        for status, problem in (
            await vote(made, files, files.orders),
            await ask(made, files, files.orders, "GET", "/api/v1/events"),
        ):
            assert status == 401
            assert said in problem["detail"]
        assert made.told == []
