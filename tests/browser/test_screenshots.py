"""The pictures of the console in the documentation, taken on request: `make screenshots`."""

import contextlib
import os
import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, Route, expect
from support.bridge_process import Stage, file_sink
from support.console import Console, watched
from support.past import Past, remembered
from support.webhook_receiver import Receiver, receiving, says
from support.world import scheduled_event

FOLDER = os.environ.get("SEB_SCREENSHOTS", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="SEB_SCREENSHOTS names no folder")

ME, *OTHERS = VMS = ("orders-0", "orders-1", "orders-2")
SINKS = ("orders-bus", "pager", "audit-trail")
NOW = datetime.now(UTC).replace(microsecond=0)
Theme = Literal["light", "dark"]
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def ago(**time: float) -> datetime:
    return NOW - timedelta(**time)


def event(number: int, kind: str, due: datetime, *vms: str, **more: Any) -> Any:
    usual = {"event_type": kind, "not_before": due, "resources": vms or (ME,)}
    facts = {"event_source": "Platform", "description": "Host server is undergoing maintenance."}
    name = f"{number * 0x1357BD:08X}-09D8-4932-B4FE-{number * 0x71A2C3F5D:012X}"
    return scheduled_event(name, **{**usual, **facts, **more})


async def play_a_month(past: Past) -> str:
    """A few events of the last weeks; the id of the one with the most to tell."""
    plain = [
        (1, "Freeze", 24.2, 15, 4.0, 3, 6), (2, "Reboot", 19.1, 15, 9.5, 40, 95),
        (3, "Freeze", 11.6, 15, None, 900, 8), (5, "Redeploy", 6.3, 10, 7.2, 65, 410),
    ]  # fmt: skip
    for number, kind, days, notice, approved, start, lasted in plain:
        if number == 5:
            gone = event(4, "Reboot", ago(days=9) + 15 * MINUTE, ME, OTHERS[0])
            await past.see(ago(days=9), gone)
            await past.see(ago(days=9) + 7 * MINUTE)
        seen = ago(days=days)
        one = event(number, kind, seen + notice * MINUTE)
        await past.see(seen, one)
        begin = seen
        if approved is not None:
            begin = seen + approved * MINUTE
            vote = await past.vote(begin, one, "orders-service", reason="drained")
            await past.grant(begin + SECOND / 4, one, vote)
        await past.end(begin + start * SECOND, one, lasted * SECOND)
    return await play_the_long_one(past)


async def play_the_long_one(past: Past) -> str:
    at = ago(hours=31)
    first = event(6, "Reboot", at + 15 * MINUTE, *VMS)
    await past.see(at, first)
    moved = event(6, "Reboot", at + 18 * MINUTE, *VMS)
    await past.see(at + 2.2 * MINUTE, moved)
    left = list(VMS)
    for minutes, vm in ((3.1, VMS[0]), (4.6, VMS[1])):
        left.remove(vm)
        await past.vote(
            at + minutes * MINUTE, moved, f"drain-{vm}", resource=vm, reason="drained", missing=left
        )
    hold = {"decision": "hold", "via": "http", "reason": "the nightly backup is running"}
    await past.vote(at + 5.4 * MINUTE, moved, "backup", missing=left, **hold)
    await past.vote(
        at + 9.8 * MINUTE,
        moved,
        "backup",
        missing=left,
        **{**hold, "decision": "release", "reason": "done"},
    )
    last = await past.vote(
        at + 11.3 * MINUTE, moved, f"drain-{VMS[2]}", resource=VMS[2], reason="drained"
    )
    await past.grant(at + 11.3 * MINUTE + SECOND / 3, moved, last)
    await past.end(at + 12.1 * MINUTE, moved, 163 * SECOND)
    return str(moved.key)


async def play_the_present(at: Stage, past: Past) -> None:
    """A reboot of all VMs, announced minutes ago; Azure still shows it when the bridge starts."""
    shown = at.world.create(
        name="maintenance", type="Reboot", notice="11m", resources=list(VMS),
        description="Host server is undergoing maintenance.", duration=180,
    ).event  # fmt: skip
    past.sinks = ("orders-bus", "audit-trail")
    await past.see(ago(minutes=4), shown)
    await past.vote(
        ago(minutes=2.5),
        shown,
        "drain-orders-1",
        resource="orders-1",
        reason="drained",
        missing=["orders-0", "orders-2"],
    )
    at.world.create(
        name="pause",
        type="Freeze",
        notice="14m",
        duration=9,
        description="Host network maintenance.",
    )


class Studio:
    """A bridge with a past, and a photographer."""

    def __init__(self, browser: Browser, folder: Path, pager: Receiver, orders: Receiver) -> None:
        self.browser, self.folder = browser, folder
        self.sinks = {
            "orders-bus": {"type": "webhook", "url": orders.url},
            "pager": {"type": "webhook", "url": pager.url},
            "audit-trail": file_sink(folder, "audit-trail"),
        }

    async def _tidy(self, route: Route) -> None:
        """Show the usual paths instead of those of a test."""
        answer = await route.fetch()
        text = (await answer.text()).replace(
            str(self.folder / "state"), "/var/lib/scheduled-events-bridge"
        )
        text = text.replace(str(self.folder), "/etc/scheduled-events-bridge")
        text = re.sub(r'("endpoint": )"[^"]*"', r'\1"http://169.254.169.254"', text)
        await route.fulfill(response=answer, body=text)

    def open(self, *, present: bool) -> Any:
        async def before(at: Stage) -> None:
            async with remembered(at.state_dir, ME, SINKS, ago(days=29)) as past:
                self.long = await play_a_month(past)
                if present:
                    await play_the_present(at, past)

        return watched(
            self.folder, vms=VMS, sinks=self.sinks, before=before, source={"scope": "all"}
        )

    @contextlib.asynccontextmanager
    async def page(
        self,
        base: str,
        theme: Theme = "light",
        width: int = 1280,
        height: int = 900,
    ) -> AsyncGenerator[Console]:
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=1.5
        )
        await context.route("**/api/v1/status", self._tidy)
        console = Console(await context.new_page(), base)
        await console.log_in()
        await expect(console.page.locator("#live")).to_have_text("Live")
        yield console
        await context.unroute_all(behavior="ignoreErrors")
        await context.close()


async def shoot(page: Page, name: str, *, whole: bool = False) -> None:
    await page.mouse.move(0, 0)
    await page.evaluate("document.fonts.ready")
    await page.screenshot(path=f"{FOLDER}/console-{name}.png", full_page=whole)


async def test_pictures_of_a_pending_event(browser: Browser, tmp_path):
    async with receiving() as orders, receiving(usual=says(503, "down")) as pager:
        studio = Studio(browser, tmp_path, pager, orders)
        async with studio.open(present=True) as (_, base):
            scenes: list[tuple[str, Theme, int, int]] = [
                ("now", "light", 1280, 940),
                ("dark", "dark", 1280, 940),
                ("phone", "light", 390, 844),
            ]
            for name, theme, width, height in scenes:
                async with studio.page(base, theme, width, height) as console:
                    card = console.card("Reboot of orders-0 and 2 others")
                    await expect(card).to_contain_text("pager waiting")
                    await expect(console.page.locator("#ready")).to_contain_text("Not ready")
                    await shoot(console.page, name)
            async with studio.page(base) as console:
                card = console.card("Reboot of orders-0")
                await card.get_by_role("button", name="Approve").click()
                await expect(console.dialog).to_be_visible()
                await shoot(console.page, "approve")


async def test_pictures_of_what_is_over(browser: Browser, tmp_path):
    async with receiving() as orders, receiving() as pager:
        studio = Studio(browser, tmp_path, pager, orders)
        async with studio.open(present=False) as (at, base), studio.page(base) as console:
            await expect(console.page.get_by_text("Recent events")).to_be_visible()
            await shoot(console.page, "empty")
            await console.open("#/history")
            await expect(console.page.locator("tbody tr")).to_have_count(6)
            await shoot(console.page, "history")
            await console.page.set_viewport_size({"width": 1280, "height": 1180})
            await console.open(f"#/events/{studio.long}")
            await expect(console.page.locator(".step")).to_have_count(10)
            await shoot(console.page, "event")

            pager.usual = says(400, "unknown field: drill")
            at.world.create(name="refused", type="Freeze", notice="15m")
            await console.open("#/health")
            await expect(console.row("Dead letters", "pager").first).to_be_visible()
            await orders.down()
            at.world.create(name="unheard", type="Reboot", notice="15m")
            await expect(console.row("Sinks", "orders-bus")).to_contain_text("unavailable")
            await expect(console.row("Dead letters", "pager")).to_have_count(2)
            await expect(console.page.locator("#pending-count")).to_have_text("2")
            for sink, waiting in (("orders-bus", "1"), ("pager", "0"), ("audit-trail", "0")):
                cell = console.row("Sinks", sink).locator("td").nth(2)
                await expect(cell).to_have_text(waiting)
            await shoot(console.page, "health", whole=True)
