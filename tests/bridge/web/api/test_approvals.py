"""Votes over HTTP: who may vote, what is accepted, the answers, and the rate limit."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from support.ballots import delivery
from support.bridge import Azure, last_look
from support.served_bridge import announce, bridge, config
from support.signing import Signer
from support.world import ME

from bridge.approvals.service import ApprovalService
from bridge.config import Config
from bridge.journal.votes import votes
from bridge.metadata.answers import Accepted
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE
from bridge.web.context import WebContext
from bridge.web.limits import Limiter

PATH = "/api/v1/approvals"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
ORDERS = Signer("orders")
TOKENS = [
    {"name": "ops", "token": "ops-secret"},
    {"name": "eyes", "token": "eyes-secret", "scopes": ["read"]},
]
OPS = {"Authorization": "Bearer ops-secret"}
JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def context(folder, *, http=None, **approvals):
    """A bridge that accepts votes, and an Azure that accepts every StartRequest."""
    usual = config(folder, **{"tokens": TOKENS, **(http or {})})
    given = {"http": usual.http, "state_dir": folder, "approvals": {"require": "any", **approvals}}
    async with bridge(Config.model_validate(given)) as made:
        sent = []

        async def post(choose):
            sent.append(await last_look(made.journal, choose))
            return Accepted()

        service = ApprovalService(made.runtime, Azure(post))
        service.intake.patience = 20.0
        task = asyncio.create_task(service.decisions.run())
        await announce(made.journal, EVENT_ID)
        try:
            yield made, sent
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def vote(**said):
    return json.dumps({"eventId": EVENT_ID, **said})


async def post(side, body, headers=None):
    return await side.ask("POST", PATH, data=body, headers={**JSON, **OPS, **(headers or {})})


async def cast(made):
    return await made.journal.run(lambda store: votes(store, EVENT_ID, 1))


async def test_a_vote_with_a_token_is_journaled_posted_and_answered(tmp_path):
    async with context(tmp_path) as (made, sent):
        status, body = await post(made.http, vote(id="a-1", reason="drained"))
        assert status == 202
        assert body == {
            "approvalId": "a-1",
            "outcomes": [
                {
                    "eventId": EVENT_ID,
                    "outcome": "granted",
                    "reason": None,
                    "detail": None,
                    "href": f"/api/v1/events/{EVENT_ID}",
                }
            ],
        }
        assert sent == [[EVENT_ID]]
        [found] = await cast(made)
        assert (found.approver, found.via, found.verified) == ("ops", "http", True)
        status, body = await made.http.ask("GET", f"{PATH}/a-1", headers=OPS)
        assert (status, len(body["votes"]), len(body["outcomes"])) == (200, 1, 1)


async def test_the_control_socket_accepts_votes_from_everyone_who_may_open_it(tmp_path):
    async with context(tmp_path, dry_run=True) as (made, _):
        status, body = await made.control.ask("POST", PATH, data=vote(), headers=JSON)
        assert (status, body["outcomes"][0]["outcome"]) == (202, "recorded")
        [found] = await cast(made)
        assert found.via == "control"
        assert found.approver.startswith("uid ")


async def test_a_signature_by_a_known_key_needs_no_token(tmp_path):
    async with context(tmp_path, allow=[ORDERS.entry()], dry_run=True) as (made, _):
        delivery = ORDERS.delivery(EVENT_ID)
        headers = {**JSON, **{name: value.decode() for name, value in delivery.headers}}
        for _ in range(2):
            status, body = await made.http.ask("POST", PATH, data=delivery.body, headers=headers)
            assert (status, body["approvalId"]) == (202, "w-1")
        [found] = await cast(made)
        assert (found.approver, found.verified) == ("orders", True)
        status, body = await made.http.ask("POST", PATH, data=delivery.body + b" ", headers=headers)
        assert (status, body["reason"], body["approvalId"]) == (401, "unauthorized", "w-1")
        status, _ = await made.http.ask("GET", "/api/v1/events", headers=headers)
        assert status == 401, "a signature opens no other authenticator"


async def test_a_cloudevent_is_taken_in_either_mode(tmp_path):
    async with context(tmp_path, dry_run=True) as (made, _):
        envelope = {"specversion": "1.0", "id": "a-1", "source": "/o", "type": APPROVE}
        structured = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        body = json.dumps({**envelope, "data": {"eventId": EVENT_ID}})
        assert (await post(made.http, body, structured))[0] == 202
        binary = {
            "ce-specversion": "1.0",
            "ce-id": "a-2",
            "ce-source": "/%C3%B6",
            "ce-type": APPROVE,
        }
        status, found = await post(made.http, vote(decision="hold"), binary)
        assert (status, found["approvalId"]) == (202, "a-2")
        assert "does not stop Azure" in found["outcomes"][0]["detail"]
        [standing] = await cast(made)
        assert standing.key == "/ö\x1fa-2"


BINARY = {"ce-specversion": "1.0", "ce-id": "a-1", "ce-source": "/o", "ce-type": APPROVE}


async def test_a_binary_cloudevent_needs_no_content_type(tmp_path):
    async with context(tmp_path, dry_run=True) as (made, _):
        bare = {"data": vote().encode(), "skip_auto_headers": ["Content-Type"]}
        status, found = await made.http.ask("POST", PATH, headers={**OPS, **BINARY}, **bare)
        assert (status, found["approvalId"]) == (202, "a-1")
        status, _ = await made.http.ask("POST", PATH, headers=OPS, **bare)
        assert status == 415


@pytest.mark.parametrize("kind", ["application/vnd.orders+json", "application/ld+json; a=b"])
async def test_any_json_of_an_application_is_json(tmp_path, kind):
    async with context(tmp_path, dry_run=True) as (made, _):
        assert (await post(made.http, vote(), {"Content-Type": kind}))[0] == 202
        more = {**BINARY, "Content-Type": kind}
        assert (await post(made.http, vote(), more))[1]["approvalId"] == "a-1"


@pytest.mark.parametrize(
    "headers",
    [{"specversion": "1.0"}, {"Spec-Version": "1.0", "id": "a-1"}, {"ce-id": "a-1"}, {"ce_x": "1"},
     {"cloudEventsVersion": "0.1"}, {"type": APPROVE}],
    ids=str,
)  # fmt: skip
async def test_a_header_with_a_sign_of_a_cloudevent_is_never_ignored(tmp_path, headers):
    async with context(tmp_path) as (made, sent):
        status, problem = await post(made.http, vote(), headers)
        assert (status, problem["reason"], sent) == (400, "malformed", [])


async def test_attributes_without_a_prefix_are_read(tmp_path):
    async with context(tmp_path, dry_run=True) as (made, _):
        bare = {name.removeprefix("ce-"): value for name, value in BINARY.items()}
        status, found = await post(made.http, vote(), bare)
        assert (status, found["approvalId"]) == (202, "a-1")


@pytest.mark.parametrize("name", ["ce-type", "type"])
async def test_another_cloudevent_of_ours_is_counted_and_not_taken(tmp_path, name):
    async with context(tmp_path) as (made, sent):
        more = {**BINARY, "ce-type": None, name: "azure.scheduledevents.scheduled.v1"}
        more = {name: value for name, value in more.items() if value is not None}
        status, _ = await post(made.http, vote(), more)
        assert (status, sent) == (400, [])
        assert made.runtime.status.approvals == {("dropped", "not-an-approval"): 1}


async def test_a_malformed_vote_is_counted_and_answered_with_its_id(tmp_path):
    async with context(tmp_path) as (made, _):
        status, problem = await post(made.http, vote(desicion="hold"), BINARY)
        assert (status, problem["reason"], problem["approvalId"]) == (400, "malformed", "a-1")
        status, problem = await post(made.http, "?")
        assert (status, problem["approvalId"]) == (400, None)
        assert made.runtime.status.approvals == {("refused", "malformed"): 2}


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        ("?", {}, 400, "malformed"),
        ("{}", {}, 400, "malformed"),
        (vote(decision="veto"), {}, 400, "malformed"),
        (json.dumps({"specversion": "1.0", "type": "azure.scheduledevents.started.v1"}), {}, 400, "malformed"),
        (vote(), {"Authorization": "Bearer wrong"}, 401, None),
        (vote(), {"Authorization": "Bearer eyes-secret"}, 403, None),
        (vote(approver="other"), {}, 403, "unauthorized"),
        (vote(resource="elsewhere"), {}, 409, "not-approvable"),
        (vote(), {"Content-Type": "text/plain"}, 415, None),
        (vote(), {"Content-Type": "application/cloudevents-batch+json"}, 415, None),
        (vote(), {"Content-Encoding": "identity"}, 415, None),
        (vote(), {"Content-Encoding": "gzip"}, 415, None),
        (" " * 65537, {}, 413, None),
    ],
    ids=range(13),
)  # fmt: skip
async def test_what_does_not_count_is_a_problem_with_its_status(
    tmp_path, body, headers, status, reason
):
    async with context(tmp_path) as (made, sent):
        found, problem = await post(made.http, body, headers)
        assert (found, problem["status"]) == (status, status)
        assert problem.get("reason") == reason
        assert problem["detail"].endswith(".")
        assert sent == []
        assert await cast(made) == []


async def test_a_resource_that_is_needed_and_an_event_that_is_over_have_their_statuses(tmp_path):
    async with context(tmp_path, require="each-resource") as (made, _):
        status, problem = await post(made.http, vote())
        assert (status, problem["reason"]) == (400, "resource-required")
        assert problem["outcomes"][0]["outcome"] == "refused"
        await announce(made.journal, EVENT_ID, status="Started")
        status, problem = await post(made.http, vote(resource="FrontEnd_IN_0"))
        assert (status, problem["reason"]) == (409, "expired")


async def test_some_that_count_make_it_a_202(tmp_path):
    async with context(tmp_path) as (made, _):
        both = [{"EventId": EVENT_ID}, {"EventId": "unknown"}]
        status, body = await post(made.http, json.dumps({"StartRequests": both}))
        assert status == 202
        assert [one["outcome"] for one in body["outcomes"]] == ["granted", "pending"]


async def test_without_tokens_and_keys_http_is_read_only(tmp_path):
    async with context(tmp_path, http={"tokens": []}) as (made, _):
        for headers in (JSON, {**JSON, "webhook-signature": "v1,eA=="}):
            status, _ = await made.http.ask("POST", PATH, data=vote(), headers=headers)
            assert status == 403


async def test_without_a_writable_journal_or_a_ready_bridge_it_is_a_503(tmp_path):
    async with context(tmp_path) as (made, _):
        made.journal._store.connection.execute("PRAGMA query_only = ON")
        for _ in range(2):
            assert (await post(made.http, vote()))[0] == 503
        made.runtime.take_local = None
        assert (await post(made.http, vote()))[0] == 503


@pytest.fixture
def hurried(monkeypatch):
    """A limit that is reached soon, and waits that are short."""
    begin = WebContext.__post_init__

    def hurry(made):
        begin(made)
        made.limiter = Limiter(per_minute=6000, burst=5)

    monkeypatch.setattr(WebContext, "__post_init__", hurry)
    monkeypatch.setattr("bridge.web.api.approvals._PATIENCE", 0.0)


async def test_a_token_that_asks_too_often_waits_for_its_turn_and_is_never_refused(
    tmp_path, hurried
):
    async with context(tmp_path, dry_run=True) as (made, _):
        found = await asyncio.gather(*(post(made.http, vote()) for _ in range(100)))
        assert {status for status, _ in found} == {202}
        assert (await made.control.ask("POST", PATH, data=vote(), headers=JSON))[0] == 202


async def test_an_address_that_sends_too_many_signatures_is_refused_for_a_while(tmp_path, hurried):
    async with context(tmp_path, allow=[ORDERS.entry()]) as (made, _):
        headers = {**JSON, **Signer("orders", seed=9).headers(b"other", "w-1")}
        asked = (made.http.ask("POST", PATH, data=vote(), headers=headers) for _ in range(100))
        found = await asyncio.gather(*asked)
        assert {status for status, _ in found} == {401, 429}
        assert {body["reason"] for status, body in found if status == 429} == {"rate-limited"}
        assert (await post(made.http, vote()))[0] != 429


# --- the handshake of webhooks -------------------------------------------------------------------


async def consent(made, **headers):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with made.http.session.options(made.http.base + PATH, headers=given) as answer:
        return answer.status, answer.headers


async def test_a_known_origin_is_given_consent_and_a_rate(tmp_path):
    async with context(tmp_path, http={"webhook_origins": ["EventGrid.example"]}) as (made, _):
        status, headers = await consent(made, WebHook_Request_Origin="eventgrid.example")
        assert (status, headers["WebHook-Allowed-Origin"]) == (200, "eventgrid.example")
        assert (headers["WebHook-Allowed-Rate"], headers["Allow"]) == ("120", "POST, OPTIONS")
        asked = {"WebHook_Request_Origin": "eventgrid.example", "WebHook_Request_Rate": "7"}
        assert (await consent(made, **asked))[1]["WebHook-Allowed-Rate"] == "7"
        for rate in ("0", "many", "-1", "9" * 12):
            status, headers = await consent(made, **{**asked, "WebHook_Request_Rate": rate})
            assert status == 400
            assert "WebHook-Allowed-Origin" not in headers


async def test_other_origins_get_no_consent(tmp_path):
    async with context(tmp_path) as (made, _):
        status, headers = await consent(made, WebHook_Request_Origin="evil.example")
        assert status == 403
        assert "WebHook-Allowed-Origin" not in headers
        assert (await consent(made))[0] == 204


async def listed(made, path=PATH):
    status, body = await made.http.ask("GET", path, headers=OPS)
    assert status == 200
    return body


async def test_the_latest_votes_refusals_and_strays_are_listed_newest_first(tmp_path):
    async with context(tmp_path, require="each-resource", early_grace="0s") as (made, _):
        assert await listed(made) == {"approvals": [], "more": False}
        await post(made.http, vote(resource="FrontEnd_IN_0", reason="drained", id="1"))
        await post(made.http, vote(id="2"))
        intake = made.runtime.take_local.__self__
        await intake.take(Delivery(b"not JSON", position="votes/0/7"), "bus")
        body = await listed(made)
    stray, refused, cast = body["approvals"]
    assert (cast["approvalId"], cast["outcome"], cast["approver"]) == ("1", "recorded", "ops")
    assert (cast["decision"], cast["reason"], cast["stray"]) == ("approve", "drained", False)
    assert (refused["approvalId"], refused["outcome"]) == ("2", "refused")
    assert (refused["reason"], refused["stray"]) == ("resource-required", False)
    assert refused["detail"]
    assert (stray["outcome"], stray["reason"], stray["stray"]) == ("refused", "malformed", True)
    assert (stray["via"], stray["position"], stray["eventId"]) == ("bus", "votes/0/7", None)
    assert {*stray} == {*refused} == {*cast}


async def test_a_stray_is_found_by_its_id(tmp_path):
    async with context(tmp_path) as (made, _):
        intake = made.runtime.take_local.__self__
        await intake.take(Delivery(b"not JSON", position="votes/0/7"), "bus")
        body = await listed(made, f"{PATH}/votes/0/7")
    assert [one["data"]["reason"] for one in body["outcomes"]] == ["malformed"]


async def test_the_list_is_bounded_and_says_that_there_is_more(tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.web.api.approvals.MOST", 3)
    async with context(tmp_path) as (made, _):
        intake = made.runtime.take_local.__self__
        for number in range(5):
            await intake.take(Delivery(b"?", position=f"votes/0/{number}"), "bus")
        body = await listed(made)
    assert [one["position"] for one in body["approvals"]] == ["votes/0/4", "votes/0/3", "votes/0/2"]
    assert body["more"] is True


async def test_the_list_needs_the_right_to_read(tmp_path):
    async with context(tmp_path) as (made, _):
        assert (await made.http.ask("GET", PATH))[0] == 401


async def hear(running, **said):
    service = ApprovalService(running.runtime, Azure())
    await service.intake.take(delivery(EVENT_ID, **said), "bus")


async def test_an_approval_is_found_by_its_id_even_if_that_is_a_place_in_a_log(running):
    await announce(running.journal, EVENT_ID)
    await hear(running, resource=ME, _position="approvals/0/17")
    await hear(running, id="no-resource")
    status, body = await running.http.ask("GET", "/api/v1/approvals/approvals/0/17")
    assert status == 200
    assert (body["approvalId"], len(body["votes"])) == ("approvals/0/17", 1)
    assert [one["data"]["decision"] for one in body["outcomes"]] == ["approve"]
    _, body = await running.http.ask("GET", "/api/v1/approvals/no-resource")
    assert body["votes"] == []
    assert [one["data"]["reason"] for one in body["outcomes"]] == ["resource-required"]


async def test_an_unknown_approval_is_not_found(running):
    status, body = await running.http.ask("GET", "/api/v1/approvals/nothing")
    assert status == 404
    assert "has no approval 'nothing'" in body["detail"]
