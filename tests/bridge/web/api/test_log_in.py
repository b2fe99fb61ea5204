"""The console's log-in, and everything that must not pass for one."""

import asyncio
from http.cookies import SimpleCookie

import pytest
from support.bridge import Azure
from support.certificates import issue
from support.guarded_bridge import TOKENS, audits, with_token
from support.served_bridge import announce, bridge, config

from bridge.approvals.service import ApprovalService
from bridge.config import Config
from bridge.journal.votes import votes_ever

PATH = "/api/v1/session"
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
EVIL = ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"]


class Browser:
    """What a page of the bridge has: cookies of the host, and a key of its own port."""

    def __init__(self, made):
        self.side, self.base = made.http, made.http.base
        self.cookie, self.key = "", ""

    async def ask(self, method, path, **more):
        sent = {"Cookie": self.cookie, "X-Session-Key": self.key, "Origin": self.base}
        headers = {k: v for k, v in (sent | more.pop("headers", {})).items() if v}
        # A fresh jar: the cookies are ours to say.
        async with self.side.session.request(
            method, self.base + path, headers=headers, **more
        ) as answer:
            self.side.session.cookie_jar.clear()
            found = await answer.json(content_type=None) if answer.status != 204 else None
            return answer.status, found, answer.headers

    async def log_in(self, **proof):
        status, body, headers = await self.ask("POST", PATH, json=proof)
        if status == 201:
            jar = SimpleCookie(headers["Set-Cookie"])
            ((name, morsel),) = jar.items()
            self.cookie, self.key, self.morsel = f"{name}={morsel.value}", body["key"], morsel
        return status, body

    async def who(self):
        status, body, _ = await self.ask("GET", PATH)
        assert status == 200
        return body["caller"] and body["caller"]["name"]


@pytest.fixture
async def browser(guarded):
    made = Browser(guarded)
    assert (await made.log_in(token="ops-secret"))[0] == 201
    return made


async def test_a_token_becomes_a_session_that_no_script_can_read(guarded, browser):
    assert await browser.who() == "ops"
    assert (browser.morsel["httponly"], browser.morsel["samesite"]) == (True, "Strict")
    assert (browser.morsel["path"], browser.morsel["max-age"]) == ("/", "")
    assert str(guarded.served.http.port) in browser.cookie
    assert "ops-secret" not in browser.cookie + browser.key
    status, body, _ = await browser.ask("GET", "/api/v1/status")
    assert (status, body["caller"]["by"]) == (200, "session")
    assert body["caller"]["scopes"] == ["read", "approve", "operate"]
    assert body["caller"]["expires"] > body["now"]


@pytest.mark.parametrize("proof", [{"token": "wrong"}, {"code": "wrong"}])
async def test_a_wrong_proof_is_refused_and_audited(guarded, proof):
    browser = Browser(guarded)
    status, body = await browser.log_in(**proof)
    assert (status, "does not know" in body["detail"]) == (401, True)
    assert await browser.who() is None
    assert [one["action"] for one in await audits(guarded)] == ["token.refused"]
    assert "wrong" not in str(await audits(guarded))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"x"', b'{"token": 1}', b'{"token": "a", "code": "b"}', b'{"token": ""}']
)
async def test_a_malformed_log_in_is_explained(guarded, body):
    headers = {"Content-Type": "application/json"}
    status, answer, _ = await Browser(guarded).ask("POST", PATH, data=body, headers=headers)
    assert (status, answer["detail"][:4]) == (400, "Send")


async def test_a_form_of_another_page_cannot_log_in(guarded):
    status, _, _ = await Browser(guarded).ask("POST", PATH, data={"token": "ops-secret"})
    assert status == 415


async def test_a_log_out_ends_the_session(browser):
    status, _, headers = await browser.ask("DELETE", PATH)
    assert (status, "Max-Age=0" in headers["Set-Cookie"]) == (204, True)
    assert await browser.who() is None
    assert (await browser.ask("GET", "/api/v1/events"))[0] == 401
    assert (await browser.ask("DELETE", PATH))[0] == 204


async def test_a_log_in_ends_the_session_before_it(browser):
    cookie, key = browser.cookie, browser.key
    await browser.log_in(token="viewer-secret")
    assert (browser.cookie != cookie, browser.key != key) == (True, True)
    browser.cookie, browser.key = cookie, key
    assert await browser.who() is None


async def test_an_id_that_somebody_planted_never_becomes_a_session(guarded):
    victim, name = Browser(guarded), f"seb-session-{guarded.served.http.port}"
    victim.cookie = f"{name}=planted"
    await victim.log_in(token="ops-secret")
    assert "planted" not in victim.cookie
    thief = Browser(guarded)
    thief.cookie, thief.key = f"{name}=planted", victim.key
    assert await thief.who() is None


async def test_the_session_of_another_does_not_replace_ones_own(guarded, browser):
    attacker = Browser(guarded)
    await attacker.log_in(token="viewer-secret")
    browser.cookie = f"{attacker.cookie}; {browser.cookie}"  # planted by another port
    assert await browser.who() == "ops"
    browser.cookie = attacker.cookie
    assert await browser.who() is None


@pytest.mark.parametrize("origin", EVIL)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v1/reload"), ("POST", "/api/v1/approvals"), ("DELETE", PATH), ("POST", PATH)],
)
async def test_a_page_of_another_origin_changes_nothing(guarded, browser, origin, method, path):
    body = {"token": "ops-secret"} if path == PATH else {"eventId": EVENT_ID}
    answer = await browser.ask(method, path, json=body, headers={"Origin": origin})
    assert answer[0] == 403
    assert await browser.who() == "ops"


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v1/reload"), ("POST", "/api/v1/approvals"), ("DELETE", PATH)],
)
async def test_a_change_by_cookie_needs_an_origin(browser, method, path):
    status, body, _ = await browser.ask(method, path, json={}, headers={"Origin": ""})
    assert (status, "Origin" in body["detail"]) == (403, True)
    assert await browser.who() == "ops"


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/status", "/api/v1/stream"])
async def test_a_cookie_that_another_port_got_opens_nothing(browser, path):
    browser.key = ""
    assert (await browser.ask("GET", path))[0] == 401
    assert await browser.who() is None


async def test_a_rebound_name_gets_nothing(browser):
    status, _, _ = await browser.ask("GET", PATH, headers={"Host": "rebound.example"})
    assert status == 421


async def test_a_session_has_the_scopes_of_its_token(guarded):
    viewer = Browser(guarded)
    await viewer.log_in(token="viewer-secret")
    assert (await viewer.ask("GET", "/api/v1/events"))[0] == 200
    status, body, _ = await viewer.ask("POST", "/api/v1/approvals", json={"eventId": EVENT_ID})
    assert (status, "scope approve" in body["detail"]) == (403, True)
    assert (await viewer.ask("POST", "/api/v1/reload"))[0] == 403


async def test_a_session_ends_when_its_token_changes(guarded, browser):
    new = [{"name": "ops", "token": "another"}, *TOKENS[1:]]
    http = config(guarded.journal.path.parent, tokens=new).http
    guarded.runtime.configure(guarded.runtime.config.model_copy(update={"http": http}))
    assert await browser.who() is None
    assert (await browser.ask("GET", "/api/v1/events"))[0] == 401


async def test_a_stream_takes_the_key_in_its_address(browser):
    side = browser.side
    url = f"{browser.base}/api/v1/stream?key={browser.key}"
    async with side.session.get(url, headers={"Cookie": browser.cookie}) as answer:
        assert answer.status == 200
    async with side.session.get(url) as answer:
        assert answer.status == 401


async def test_a_stream_ends_when_its_reader_logs_out(guarded, browser):
    url = f"{browser.base}/api/v1/stream?key={browser.key}"
    async with browser.side.session.get(url, headers={"Cookie": browser.cookie}) as answer:
        await browser.ask("DELETE", PATH)
        guarded.journal.announce()
        async with asyncio.timeout(20):
            while await answer.content.readline():
                pass


async def test_a_code_from_the_control_socket_logs_in_once(guarded):
    ask = guarded.control.ask
    status, made = await ask("POST", f"{PATH}/codes", json={"token": "ops"})
    assert status == 201
    assert made["url"] == f"{guarded.http.base}/#code={made['code']}"
    browser = Browser(guarded)
    assert (await browser.log_in(code=made["code"]))[0] == 201
    assert await browser.who() == "ops"
    assert (await Browser(guarded).log_in(code=made["code"]))[0] == 401
    assert (await ask("POST", f"{PATH}/codes", json={"token": "nobody"}))[0] == 404


async def test_only_the_control_socket_gives_out_codes(guarded, browser):
    asked = {"json": {"token": "ops"}}
    over_http = await guarded.http.ask("POST", f"{PATH}/codes", **with_token("ops-secret"), **asked)
    assert over_http[0] == 403
    assert (await browser.ask("POST", f"{PATH}/codes", **asked))[0] == 403
    assert (await guarded.http.ask("POST", f"{PATH}/codes", **asked))[0] == 401


async def test_without_tokens_everyone_reads_and_nobody_logs_in_or_votes(running):
    browser = Browser(running)
    assert await browser.who() == "anonymous"
    status, body = await browser.log_in(token="anything")
    assert (status, "read-only" in body["detail"]) == (403, True)
    for path in ("/api/v1/approvals", "/api/v1/reload"):
        assert (await browser.ask("POST", path, json={"eventId": EVENT_ID}))[0] == 403
    assert (await running.control.ask("POST", PATH, json={"token": "x"}))[0] == 400


async def test_a_vote_from_the_console_is_a_vote_of_its_token_over_http(tmp_path):
    http = config(tmp_path, tokens=TOKENS).http
    given = {"http": http, "state_dir": tmp_path, "approvals": {"require": "any"}}
    async with bridge(Config.model_validate(given)) as made:
        service = ApprovalService(made.runtime, Azure())
        made.runtime.take_local = service.intake.take_local
        await announce(made.journal, EVENT_ID)
        browser = Browser(made)
        await browser.log_in(token="ops-secret")
        status, _, _ = await browser.ask("POST", "/api/v1/approvals", json={"eventId": EVENT_ID})
        assert status == 202
        [vote] = await made.journal.run(lambda store: votes_ever(store, EVENT_ID))
        assert (vote.approver, vote.via, vote.verified) == ("ops", "http", True)


async def test_over_tls_the_cookie_is_for_this_host_and_tls_alone(tmp_path):
    issued = issue(tmp_path / "certificates")
    tls = {"certificate": issued.server.certificate, "key": issued.server.key}
    async with bridge(config(tmp_path, tokens=TOKENS, tls=tls)) as made:
        browser = Browser(made)
        browser.base = browser.base.replace("http://", "https://")
        status, _, headers = await browser.ask(
            "POST", PATH, json={"token": "ops-secret"}, ssl=issued.context()
        )
        assert status == 201
        cookie = headers["Set-Cookie"]
        assert cookie.startswith(f"__Host-seb-session-{browser.base.rpartition(':')[2]}=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Strict"} <= set(cookie.split("; "))
