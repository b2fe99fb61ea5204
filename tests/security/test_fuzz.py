"""Random bytes get only documented answers, raise only documented errors, and never make a vote."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks import ORDERS, RULES, signed
from support.bridge import Azure
from support.fuzzing import again
from support.served_bridge import announce, bridge, config

from bridge.approvals.service import ApprovalService
from bridge.approvals.verification import Verifier
from bridge.common.signatures import HEADERS
from bridge.config import Config
from bridge.journal.votes import votes
from bridge.policy.allow import Allow
from bridge.policy.message import APPROVE, MalformedApproval, NotForUs, read, unwrap
from bridge.policy.votes import Refusal

EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
PATH = "/api/v1/approvals"
ALLOW = [Allow.model_validate(entry) for entry in RULES["allow"]]
GOOD = signed(ORDERS, EVENT_ID, "good")
ANSWERS = {400, 401, 403, 409, 413, 415}

NAMES = st.sampled_from([*HEADERS, "content-type", "ce-id", "ce_type", "ce-specversion", "x"])
TEXTS = st.one_of(
    st.sampled_from([value for _, value in GOOD.headers]),
    st.sampled_from(["1.0", APPROVE, "application/cloudevents+json", "v1,", "v1a,AAAA", "1e9", ""]),
    st.text(
        st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40
    ),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["eventId", "approver", "id", "data", "specversion", "StartRequests",
                             "EventId", "decision", "resource", "payload", *HEADERS, "type"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)  # fmt: skip
BODIES = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda found: json.dumps(found).encode()),
    st.just(b'{"eventId": "%b"}' % EVENT_ID.encode()),
    st.tuples(st.integers(0, len(GOOD.body) - 1), st.integers(1, 255)).map(
        lambda at: GOOD.body[: at[0]] + bytes([GOOD.body[at[0]] ^ at[1]]) + GOOD.body[at[0] + 1 :]
    ),
)
HEADS = st.one_of(
    st.lists(st.tuples(NAMES, TEXTS), max_size=5),
    st.just(GOOD.headers),
    st.tuples(NAMES, TEXTS).map(lambda one: [*GOOD.headers, one]),
)
"""The headers of a valid vote too; they never match the random body."""


@pytest.mark.fuzz
@settings(max_examples=300)
@given(BODIES, HEADS, st.lists(st.tuples(NAMES, st.binary(max_size=30)), max_size=2))
def test_the_parser_and_the_verifier_raise_only_documented_errors_and_verify_nothing(
    body, found, more
):
    headers = [*((name, value.encode()) for name, value in found), *more]
    with suppress(MalformedApproval, NotForUs):
        text, claims = unwrap(body, headers)
        proof = Verifier().prove(ALLOW, claims, text, must_sign=True)
        assert isinstance(proof, Refusal), "nobody has signed this"
        read(text, claims)


@asynccontextmanager
async def served(folder):
    http = config(folder, tokens=[{"name": "eyes", "token": "eyes", "scopes": ["read"]}]).http
    given = {"http": http, "state_dir": folder, "approvals": RULES}
    async with bridge(Config.model_validate(given)) as made:
        ApprovalService(made.runtime, Azure())
        await announce(made.journal, EVENT_ID)
        yield made


@pytest.fixture
def loop():
    """Hypothesis is not asynchronous: one loop and one server serve all of its examples."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.fuzz
def test_the_endpoint_never_fails_and_never_accepts_unsigned_messages(loop, tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.web.limits.Limiter.delay", lambda *_: 0.0)
    manager = served(tmp_path)
    made = loop.run(manager.__aenter__())
    seen = set()

    async def send(body, found):
        headers = [("Content-Type", "application/json"), *found]
        async with made.http.session.post(made.http.base + PATH, data=body, headers=headers) as got:
            seen.add(got.status)
            assert got.status in ANSWERS, (got.status, body, headers)

    @settings(max_examples=200)
    @given(BODIES, HEADS)
    def attack(body, found):
        loop.run(send(body, found))

    try:
        again(attack)
        cast = loop.run(made.journal.run(lambda store: votes(store, EVENT_ID, 1)))
        assert cast == []
        assert {400, 401} <= seen
        good = signed(ORDERS, EVENT_ID, "later")
        headers = [("Content-Type", "application/json"), *good.headers]
        asked = made.http.ask("POST", PATH, data=good.body, headers=headers)
        assert loop.run(asked)[0] == 202, "and a good vote is taken as before"
    finally:
        loop.run(manager.__aexit__(None, None, None))
