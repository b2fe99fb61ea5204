"""For everyone: axe-core finds nothing, nothing moves when data arrives, and every width is wide enough."""

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, expect
from support.bridge_process import Stage, announce, file_sink
from support.console import OPS, Console, watched
from support.lacking import lacking
from support.scripts import Unobtainable, run_script
from support.webhook_receiver import receiving, says

ROOT = Path(__file__).parents[2]
PLACES = ("#/", "#/history", "#/health", "#/drill")


def axe() -> str:
    try:
        tools = run_script("javascript-libs", str(ROOT / "tests/browser/tools"))
    except Unobtainable as error:
        lacking(f"axe-core is not to be had: {error}")
    return (Path(tools) / "node_modules/axe-core/axe.min.js").read_text("utf-8")


SETTLED = """() => Promise.allSettled(
  document.getAnimations()
    .filter((one) => one.effect.getComputedTiming().iterations !== Infinity)
    .map((one) => one.finished))"""


async def complaints(page: Page) -> list[str]:
    """What axe finds once nothing fades in any more: what is half transparent has no contrast."""
    await page.evaluate(f"async () => {{ await ({SETTLED})(); }}")
    found: dict[str, Any] = await page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations']})"
    )
    return [
        f"{page.url}: {one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def populate(at: Stage, page: Page, base: str) -> str:
    """An event with votes and a hold, a past one, and a drill that runs; the pending EventId."""
    past = announce(at, "past", type="Freeze", notice="10m")
    await at.polled()
    at.world.cancel("past")
    event = announce(at, "pending", resources=["vm-0", "vm-1"], description="Host maintenance.")
    await at.polled()
    headers = {"Authorization": f"Bearer {OPS}"}
    for decision in ("approve", "hold"):
        vote = {"eventId": event, "decision": decision, "resource": "vm-0", "reason": "because"}
        answer = await page.request.post(f"{base}/api/v1/approvals", data=vote, headers=headers)
        assert answer.status == 202, await answer.text()
    await page.request.post(f"{base}/api/v1/approvals", data={"eventId": past}, headers=headers)
    plan = {"eventType": "Reboot", "notice": "20m"}
    answer = await page.request.post(f"{base}/api/v1/drills", data=plan, headers=headers)
    assert answer.status == 201, await answer.text()
    return event


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing_on_any_page(
    browser: Browser, tmp_path, theme: Literal["light", "dark"]
):
    script = axe()
    context = await browser.new_context(
        viewport={"width": 1280, "height": 860}, color_scheme=theme, bypass_csp=True
    )
    async with receiving(usual=says(400, "no")) as pager:
        sinks = {
            "audit-trail": file_sink(tmp_path, "audit-trail"),
            "pager": {"type": "webhook", "url": pager.url, "required": False},
        }
        async with watched(tmp_path, vms=("vm-0", "vm-1"), sinks=sinks) as (at, base):
            page = await context.new_page()
            await page.add_init_script(script)
            console = Console(page, base)
            await page.goto(base)
            await expect(page.get_by_text("Log in to see this bridge")).to_be_visible()
            found = await complaints(page)
            await console.log_in()
            await expect(page.get_by_text("Azure plans nothing here")).to_be_visible()
            found += await complaints(page)
            event = await populate(at, page, base)
            for place in (*PLACES, f"#/events/{event}"):
                await console.open(place)
                await expect(page.locator("main .card, main table").first).to_be_visible()
                found += await complaints(page)
            await page.get_by_role("button", name="Approve").first.click()
            await expect(console.dialog).to_be_visible()
            found += await complaints(page)
            assert found == []
    await context.close()


SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            for (const one of entry.sources) {
                // What got a new text and kept its place, or its right edge, is a source too.
                const [was, is] = [one.previousRect, one.currentRect];
                if (was.y !== is.y || (was.x !== is.x && Math.abs(was.right - is.right) > 1)) {
                    const what = one.node?.outerHTML ?? one.node?.data ?? "text";
                    window.shifts.push(`${what.slice(0, 200)}: ${JSON.stringify([was, is])}`);
                }
            }
        }
    }).observe({type: "layout-shift", buffered: true});
}"""


async def test_nothing_moves_when_data_arrives(page: Page, tmp_path):
    await page.add_init_script(f"({SHIFTS})()")
    async with receiving() as pager:
        sinks = {
            "audit-trail": file_sink(tmp_path, "audit-trail"),
            "pager": {"type": "webhook", "url": pager.url},
        }
        async with watched(tmp_path, vms=("vm-0", "vm-1"), sinks=sinks) as (at, base):
            console = Console(page, base)
            await console.log_in()
            await page.reload()
            first = announce(at, "first", resources=["vm-0", "vm-1"])
            await expect(console.card("Reboot of vm-0 and vm-1")).to_contain_text(
                "All 2 sinks know"
            )
            announce(at, "sooner", type="Freeze", notice="5m", started_for=None)
            await expect(console.card("Freeze of vm-0")).to_contain_text("All 2 sinks know")
            headers = {"Authorization": f"Bearer {OPS}"}
            vote = {"eventId": first, "resource": "vm-0"}
            await page.request.post(f"{base}/api/v1/approvals", data=vote, headers=headers)
            await expect(console.card("Reboot of vm-0")).to_contain_text("by ops")
            await pager.down()
            at.world.reschedule("first", "12m")
            await expect(page.locator("#ready")).to_contain_text("Not ready.")
            at.world.start("sooner")
            await expect(console.card("Freeze of vm-0")).to_contain_text("Started")
            at.world.complete("sooner")
            await expect(console.card("Freeze of vm-0")).to_contain_text("Completed")
            assert await page.evaluate("window.shifts") == []


async def test_no_page_is_wider_than_the_screen(page: Page, tmp_path):
    async with watched(tmp_path, vms=("vm-0", "vm-1")) as (at, base):
        console = Console(page, base)
        await console.log_in()
        event = await populate(at, page, base)
        for place in (*PLACES, f"#/events/{event}"):
            await console.open(place)
            await expect(page.locator("main .card, main table").first).to_be_visible()
            for width in (360, 820, 1920):
                await page.set_viewport_size({"width": width, "height": 800})
                needed = await page.evaluate("document.documentElement.scrollWidth")
                assert needed <= width, (place, width)


async def test_the_theme_follows_the_system_until_it_is_switched(page: Page, tmp_path):
    background = "getComputedStyle(document.body).backgroundColor"
    async with watched(tmp_path, tokens=[]) as (_, base):
        console = Console(page, base)
        await page.emulate_media(color_scheme="light")
        await console.open()
        light = await page.evaluate(background)
        await page.emulate_media(color_scheme="dark")
        dark = await page.evaluate(background)
        assert light != dark
        await page.get_by_role("button", name="Switch between light and dark").click()
        assert await page.evaluate(background) == light
        await page.reload()
        assert await page.evaluate(background) == light


async def test_nothing_is_animated_for_those_who_want_less_motion(page: Page, tmp_path):
    async with watched(tmp_path) as (_, base):
        await page.emulate_media(reduced_motion="reduce")
        await page.goto(base)
        await page.get_by_role("button", name="Log in", exact=True).click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await page.evaluate("document.getAnimations().length") == 0


async def test_times_are_local_with_utc_on_hover(browser: Browser, tmp_path):
    context = await browser.new_context(timezone_id="Asia/Kolkata")
    async with watched(tmp_path, tokens=[]) as (at, base):
        announce(at, "soon")
        page = await context.new_page()
        await Console(page, base).open()
        time = page.get_by_role("article").locator(".when time").first
        utc = (await time.get_attribute("datetime") or "")[:19].replace("T", " ")
        await expect(time).to_have_attribute("title", f"{utc} UTC")
        hours = (int(utc[11:13]) * 60 + int(utc[14:16]) + 330) // 60 % 24
        assert (await time.inner_text())[-8:-6] == f"{hours:02}"
    await context.close()
