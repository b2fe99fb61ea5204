"""Whatever is sent to the API, the probes and the control socket gets an answer that is no failure."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.attacks import RULES
from support.bridge import Azure
from support.fuzzing import again, damaged
from support.served_bridge import announce, bridge, kill

from bridge.approvals.service import ApprovalService
from bridge.config import Config
from bridge.journal.votes import votes
from bridge.platform import control_address

EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
PATIENCE = 0.1
"""For an answer, in seconds; an unfinished request has none."""
FAILURES = {500, 502, 504}
"""Only aiohttp itself answers 500, to an `Expect` header that is not text."""
PATHS = (
    *("/", "/livez", "/readyz", "/metrics", "/api/v1/events", f"/api/v1/events/{EVENT_ID}"),
    *("/api/v1/status", "/api/v1/sinks", "/api/v1/sources", "/api/v1/dead-letters"),
    *("/api/v1/dead-letters/1", "/api/v1/dead-letters/1/replay", "/api/v1/approvals"),
    *("/api/v1/approvals/x", "/api/v1/sinks/bus/replay", "/api/v1/sinks/pager/resume"),
    *("/api/v1/drills", "/api/v1/drills/x", "/api/v1/stream", "/api/v1/openapi.json"),
    *("/api/v1/reload", "/api/v1/session"),
)
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(["limit", "before", "after", "state", "strays", "type", "all", "sink"])
        | st.text(max_size=4),
        st.text(max_size=8) | st.sampled_from(["-1", "1e9", "9" * 30, "yes", "%00", "%ff", "☃"]),
    ).map("=".join),
    max_size=3,
).map("&".join)
TARGETS = st.one_of(
    st.sampled_from(PATHS).map(str.encode),
    st.builds(lambda path, query: f"{path}?{query}".encode(), st.sampled_from(PATHS), QUERIES),
    damaged(st.sampled_from(PATHS).map(str.encode)),
)
METHODS = st.sampled_from(
    [b"GET", b"POST", b"DELETE", b"PUT", b"HEAD", b"OPTIONS", b"PATCH", b"X", b"get"]
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding",
             "Authorization", "Origin", "Cookie", "Last-Event-ID", "Expect", "Range", "Accept",
             "Accept-Encoding", "Upgrade", "webhook-id", "ce-type", "If-None-Match"]
        ),
        st.sampled_from(
            ["", "0", "-1", "9" * 25, "chunked", "gzip", "Bearer eyes", "Bearer ", "Basic Og==", "null", "*",
             "application/json", "100-continue", "websocket", "bytes=0-", "http://evil.example"]
        ) | st.text(st.characters(max_codepoint=255), max_size=20),
    ),
    max_size=4,
)  # fmt: skip
BODIES = damaged(
    st.sampled_from(
        [{"eventId": EVENT_ID}, {"type": "Reboot", "notice": "1m"}, {"token": "eyes"}, {"sinks": ["bus"]}, []]
    ).map(lambda value: json.dumps(value).encode())
)  # fmt: skip


def request(method, target, headers, body):
    lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: 127.0.0.1", b"Connection: close"]
    lines += [b"Authorization: Bearer eyes"] * (not any(n == "Authorization" for n, _ in headers))
    lines += [f"{name}: {value}".encode("latin-1") for name, value in headers]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


REQUESTS = st.builds(request, METHODS, TARGETS, HEADERS, BODIES)
DAMAGED = damaged(REQUESTS) | st.binary(max_size=100)


async def status_of(connecting, sent):
    """The status of the answer; None if there is none, because the request never ends."""
    reader, writer = await connecting
    try:
        writer.write(sent)
        line = b""
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                line = await reader.readline()
        return int(line.split()[1]) if line else None
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def prepared(folder):
    """A bridge with an event, a dead letter, and a token that may only read."""
    tokens = [{"name": "eyes", "token": "eyes", "scopes": ["read"]}]
    http = {"listen": "127.0.0.1:0", "probes_listen": "127.0.0.1:0", "tokens": tokens}
    given = {"http": http, "state_dir": folder, "approvals": RULES}
    async with bridge(Config.model_validate(given)) as made:
        ApprovalService(made.runtime, Azure())
        for told in await announce(made.journal, EVENT_ID):
            await kill(made.journal, "bus", told)
        yield made


@pytest.mark.fuzz
@pytest.mark.parametrize("where", ["api", "probes", "control"])
def test_no_request_fails_and_none_without_a_signature_votes(tmp_path, monkeypatch, caplog, where):
    monkeypatch.setattr("bridge.web.limits.Limiter.delay", lambda *_: 0.0)
    seen: set[int | None] = set()

    @settings(max_examples=60)
    @given(REQUESTS | DAMAGED)
    @example(request(b"GET", b"/", [("Expect", "\x80")], b""))
    @example(request(b"GET", b"/livez", [], b""))
    @example(b"no request at all\r\n\r\n")
    def attack(sent):
        status = runner.run(status_of(connect(), sent))
        seen.add(status)
        assert status not in FAILURES or b"Expect" in sent, (status, sent)

    with asyncio.Runner() as runner:
        manager = prepared(tmp_path)
        made = runner.run(manager.__aenter__())
        served = {"api": made.served.http, "probes": made.served.probes}.get(where)

        def connect():
            if served is None:
                return asyncio.open_unix_connection(control_address(tmp_path))
            return asyncio.open_connection(served.host, served.port)

        try:
            again(attack)
            assert {200, 400} <= seen, seen
            assert [record for record in caplog.records if record.exc_info] == []
            if where != "control":
                cast = runner.run(made.journal.run(lambda store: votes(store, EVENT_ID, 1)))
                assert cast == []
        finally:
            runner.run(manager.__aexit__(None, None, None))
