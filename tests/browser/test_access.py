"""Who may see and press what: log-in, scopes, other sites, other ports and rebound names."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from aiohttp import web
from playwright.async_api import BrowserContext, Page, expect
from support.bridge_process import announce, posts
from support.console import READER, TOKENS, Console, watched
from support.tcp_proxy import TcpProxy

from bridge.platform import control_address, control_connector

VOTE = """async ([url, eventId, more]) => {
    try {
        const answer = await fetch(url + "/api/v1/approvals", {
            method: "POST", credentials: "include",
            headers: {"Content-Type": "application/json", ...more}, body: JSON.stringify({eventId}),
        });
        return answer.status;
    } catch (error) { return String(error); }
}"""
SIMPLE_VOTE = """async ([url, eventId]) => {
    await fetch(url + "/api/v1/approvals", {
        method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify({eventId}),
    });
}"""
READ = """async (url) => {
    try { return (await fetch(url + "/api/v1/events", {credentials: "include"})).status; }
    catch (error) { return String(error); }
}"""


@contextlib.asynccontextmanager
async def other_site() -> AsyncGenerator[int]:
    """A page of somebody else on this machine; its port."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>other</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_without_tokens_everything_is_shown_and_nothing_can_be_approved(page: Page, tmp_path):
    async with watched(tmp_path, tokens=[]) as (at, base):
        console = Console(page, base)
        event = announce(at, "look")
        await console.open()
        card = console.card("Reboot of vm-0")
        await expect(card).to_contain_text(
            "To vote here, add a token under http.tokens and log in."
        )
        for place in ("#/", f"#/events/{event}", "#/health", "#/drill"):
            await console.open(place)
            await expect(page.locator("main h1, main h2").first).to_be_visible()
            buttons = await page.locator("main button").all_inner_texts()
            assert buttons == [], place
        await page.get_by_role("button", name="Read only").click()
        await expect(console.dialog).to_contain_text("scopes: [read, approve, operate]")
        assert await page.evaluate(VOTE, [base, event, {}]) == 403
        assert posts(at) == []


async def test_with_tokens_nothing_is_shown_before_a_log_in_and_scopes_decide_after(
    page: Page, tmp_path
):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        event = announce(at, "secret")
        await page.goto(base)
        await expect(page.get_by_text("Log in to see this bridge")).to_be_visible()
        assert await page.evaluate(VOTE, [base, event, {}]) == 401
        await page.get_by_role("button", name="Log in", exact=True).click()
        await page.get_by_label("Token").fill("a wrong one")
        await page.keyboard.press("Enter")
        await expect(console.dialog.get_by_role("alert")).not_to_be_empty()
        await page.keyboard.press("Escape")

        await console.log_in(READER)
        card = console.card("Reboot of vm-0")
        await expect(card).to_contain_text("dashboard has no scope approve, so it cannot vote.")
        await expect(page.locator("main button")).to_have_count(0)
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_text("Log in to see this bridge")).to_be_visible()
        await expect(card).to_have_count(0)
        await console.log_in()
        await expect(card.get_by_role("button", name="Approve")).to_be_visible()
        assert posts(at) == []


async def test_a_one_time_code_logs_in_once_and_leaves_the_address(
    page: Page, context: BrowserContext, tmp_path
):
    async with watched(tmp_path) as (at, base):
        connector = control_connector(control_address(at.state_dir))
        async with aiohttp.ClientSession(connector=connector) as control:
            url = "http://bridge/api/v1/session/codes"
            async with control.post(url, json={"token": "ops"}) as answer:
                code = (await answer.json())["code"]
        await page.goto(f"{base}/#code={code}")
        await expect(page.get_by_role("button", name="Log out")).to_be_visible()
        assert code not in page.url
        await page.reload()
        await expect(page.get_by_role("button", name="Log out")).to_be_visible()

        await page.get_by_role("button", name="Log out").click()
        again = await context.new_page()
        await again.goto(f"{base}/#code={code}")
        await expect(again.get_by_text("The link has been used or is too old.")).to_be_visible()
        assert code not in again.url


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1"])
async def test_a_page_of_another_site_or_port_can_neither_read_nor_vote(
    page: Page, context: BrowserContext, tmp_path, host: str
):
    async with watched(tmp_path) as (at, base), other_site() as port:
        console = Console(page, base)
        await console.log_in()
        event = announce(at, "target", started_for=None)
        await expect(console.card("Reboot of vm-0")).to_be_visible()
        elsewhere = await context.new_page()
        await elsewhere.goto(f"http://{host}:{port}/")
        assert await elsewhere.evaluate("localStorage.length") == 0
        assert "Failed to fetch" in await elsewhere.evaluate(READ, base)
        assert "Failed to fetch" in await elsewhere.evaluate(VOTE, [base, event, {}])
        await elsewhere.evaluate(SIMPLE_VOTE, [base, event])
        await elsewhere.set_content(
            f'<form method="post" enctype="text/plain" action="{base}/api/v1/approvals">'
            f"<input name='{{&quot;eventId&quot;: &quot;{event}&quot;, &quot;reason&quot;: &quot;' value='&quot;}}'></form>"
        )
        async with elsewhere.expect_navigation() as going:
            await elsewhere.evaluate("document.forms[0].submit()")
        answer = await going.value
        assert answer is not None
        assert answer.status in {401, 403, 415}

        framed = await context.new_page()
        await framed.goto(f"http://{host}:{port}/")
        await framed.set_content(f'<iframe src="{base}/"></iframe>')
        await framed.wait_for_load_state()
        assert await framed.frames[1].locator(".top").count() == 0

        await asyncio.gather(at.polled(3))
        assert posts(at) == []
        await expect(console.card("Reboot of vm-0")).to_contain_text("1 approval missing")


async def test_a_rebound_name_reaches_nothing(page: Page, tmp_path):
    async with watched(tmp_path, tokens=[]) as (at, base):
        event = announce(at, "rebound", started_for=None)
        await at.polled()
        host, _, bridge_port = base.removeprefix("http://").partition(":")
        async with other_site() as port:
            rebound = f"http://rebound.example:{port}"
            await page.goto(rebound)
        # The name now leads to the bridge, and the attacker's page is still open.
        async with TcpProxy((host, int(bridge_port)), port=port):
            assert await page.evaluate(READ, rebound) == 421
            assert await page.evaluate(VOTE, [rebound, event, {}]) == 421
            answer = await page.goto(rebound)
            assert answer is not None
            assert answer.status == 421
        assert posts(at) == []


async def test_a_cookie_without_its_key_opens_nothing(page: Page, tmp_path):
    async with watched(tmp_path) as (_, base):
        console = Console(page, base)
        await console.log_in()
        await page.evaluate("localStorage.clear()")
        await page.reload()
        await expect(page.get_by_text("Log in to see this bridge")).to_be_visible()
        assert await page.evaluate(READ, base) == 401


HOSTILE = """<img src=x onerror="window.pwned = 1"><script>window.pwned = 2</script>{{7*7}}"""


async def test_hostile_text_is_inert_on_every_page(page: Page, tmp_path):
    tokens = [{**TOKENS[0], "name": "<b onmouseover=window.pwned=3>ops"}]
    async with watched(tmp_path, tokens=tokens) as (at, base):
        console = Console(page, base)
        await console.log_in()
        event = announce(at, "hostile", description=HOSTILE, started_for=None)
        card = page.get_by_role("article")
        await expect(card).to_contain_text(HOSTILE)
        await card.get_by_role("button", name="Hold").click()
        await expect(console.dialog).to_contain_text(HOSTILE)
        await console.dialog.get_by_label("Reason").fill(HOSTILE)
        await console.dialog.get_by_role("button", name="Hold").click()
        await expect(console.dialog).to_contain_text("The vote is recorded.")
        await page.keyboard.press("Escape")
        await expect(card).to_contain_text("<b onmouseover=window.pwned=3>ops holds")
        await console.open(f"#/events/{event}")
        await expect(page.get_by_role("table", name="Votes")).to_contain_text(HOSTILE)
        await page.locator(".step summary").first.click()
        shown = json.loads(await page.locator(".step pre").first.inner_text())
        assert shown["data"]["description"] == HOSTILE
        for place in (
            "#/history",
            "#/health",
            "#/drill",
            "#/events/%3Cimg%20src%3Dx%3E",
            "#/events/%ZZ",
        ):
            await console.open(place)
            await expect(page.locator("main h1").first).to_be_attached()
        assert await page.evaluate("window.pwned") is None
        assert await page.locator("main img, main script, main b[onmouseover]").count() == 0
