"""Scheduled events on the page Now and on their own page: they come, are approved, start and end."""

import json
import re

from playwright.async_api import Page, Request, expect
from support.bridge_process import announce, posts
from support.console import Console, watched
from support.until import until

STARTED = {"started_for": None}


def seconds(text: str) -> int:
    minutes, rest = re.findall(r"\d+", text)[-2:]
    return int(minutes) * 60 + int(rest)


async def test_an_event_appears_counts_down_is_approved_starts_and_completes(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        await page.evaluate("window.sameDocument = true")
        await expect(page.get_by_text("Azure plans nothing here")).to_be_visible()

        announce(at, "maintenance", description="Host maintenance.", **STARTED)
        card = console.card("Reboot of vm-0")
        await expect(card).to_contain_text("Host maintenance.")
        await expect(card).to_contain_text("1 approval missing")
        await expect(card).to_contain_text("audit-trail delivered")
        countdown = card.locator(".when-large")
        first = seconds(await countdown.inner_text())
        assert 800 < first < 910

        async def lower() -> bool:
            return seconds(await countdown.inner_text()) < first

        await until(lower, "a lower countdown")

        await card.get_by_role("button", name="Approve").click()
        await expect(console.dialog).to_contain_text("Approve Reboot of vm-0?")
        await expect(console.dialog).to_contain_text("That releases this VM")
        assert posts(at) == []
        await console.dialog.get_by_label("Reason").fill("drained")
        await console.dialog.get_by_role("button", name="Approve").click()
        await expect(console.dialog).to_contain_text("Azure was told, and accepted.")
        await console.dialog.get_by_role("button", name="Close").click()

        await expect(card).to_contain_text("Started")
        await expect(card.get_by_role("button", name="Approve")).to_have_count(0)
        assert len(posts(at)) == 1
        at.world.complete("maintenance")
        await expect(card).to_contain_text("Completed")
        await expect(page.get_by_text("Nothing is pending")).to_be_visible()
        assert await page.evaluate("window.sameDocument")

        await card.get_by_role("link", name="Reboot of vm-0").click()
        await expect(page.get_by_role("row").filter(has_text="ops")).to_contain_text("drained")
        steps = page.locator(".step-name")
        await expect(steps).to_have_text(
            ["Announced", "Azure accepted the approval", "Started", "Completed"]
        )
        await page.locator(".step summary").first.click()
        shown = json.loads(await page.locator(".step pre").first.inner_text())
        assert shown["type"] == "azure.scheduledevents.scheduled.v1"


async def test_the_dialog_names_every_vm_and_votes_for_this_one(page: Page, tmp_path):
    async with watched(tmp_path, vms=("vm-0", "vm-1", "vm-2")) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "all", resources=["vm-2", "vm-0", "vm-1"], **STARTED)
        card = console.card("Reboot of vm-0 and 2 others")
        await expect(card).to_contain_text("3 approvals missing")
        await card.get_by_role("button", name="Approve").click()
        names = console.dialog.get_by_role("listitem")
        await expect(names).to_have_text(["vm-0this VM", "vm-2", "vm-1"])
        await expect(console.dialog).to_contain_text("releases all of these VMs together")
        await console.dialog.get_by_role("button", name="Approve").click()
        recorded = "The vote is recorded. Still missing: vm-2, vm-1."
        await expect(console.dialog).to_contain_text(recorded)
        await page.keyboard.press("Escape")
        await expect(card).to_contain_text("2 approvals missing")
        await expect(card).to_contain_text("vm-0 by ops")
        assert posts(at) == []


async def test_an_event_that_changes_under_the_dialog_must_be_confirmed_again(page: Page, tmp_path):
    sent: list[dict] = []

    def note(request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/approvals"):
            sent.append(json.loads(request.post_data or ""))

    page.on("request", note)
    async with watched(tmp_path, vms=("vm-0", "vm-1")) as (at, base):
        console = Console(page, base)
        await console.log_in()
        event = announce(at, "moving", resources=["vm-0"], **STARTED)
        await console.card("Reboot of vm-0").get_by_role("button", name="Approve").click()
        approve = console.dialog.get_by_role("button", name="Approve")
        await expect(approve).to_be_enabled()

        at.world.update("moving", resources=["vm-0", "vm-1"])
        await expect(console.dialog).to_contain_text("changed while you were reading")
        await expect(approve).to_have_count(0)
        assert sent == []

        await console.dialog.get_by_role("button", name="Show the new version").click()
        await expect(console.dialog.get_by_role("listitem")).to_have_count(2)
        await approve.click()
        await expect(console.dialog).to_contain_text("The vote is recorded.")
        answer = await page.request.get(
            f"{base}/api/v1/events/{event}",
            headers={"Authorization": "Bearer token-of-the-operators"},
        )
        assert [one["seen"] for one in sent] == [(await answer.json())["state"]]
        assert sent[0]["resource"] == "vm-0"


async def test_a_hold_says_that_it_does_not_stop_azure_and_is_released(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "held")
        card = console.card("Reboot of vm-0")
        await expect(card.get_by_role("button", name="Release")).to_have_count(0)
        await card.get_by_role("button", name="Hold").click()
        await expect(console.dialog).to_contain_text("A hold does not stop Azure.")
        await console.dialog.get_by_label("Reason").fill("backup")
        await console.dialog.get_by_role("button", name="Hold").click()
        await expect(console.dialog).to_contain_text("The vote is recorded.")
        await page.keyboard.press("Escape")
        await expect(card).to_contain_text("ops holds")
        await expect(card).to_contain_text(re.compile(r"ends in (09:5\d|10:00)"))
        await card.get_by_role("button", name="Release").click()
        await console.dialog.get_by_role("button", name="Release").click()
        await expect(console.dialog).to_contain_text("The vote is recorded.")
        await page.keyboard.press("Escape")
        await expect(card).not_to_contain_text("ops holds")
        assert posts(at) == []


async def test_the_keyboard_alone_is_enough_to_approve(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "keys", **STARTED)
        button = console.card("Reboot of vm-0").get_by_role("button", name="Approve")
        await expect(button).to_be_visible()
        for _ in range(40):
            await page.keyboard.press("Tab")
            if await button.evaluate("element => element === document.activeElement"):
                break
        await page.keyboard.press("Enter")
        await expect(console.dialog.get_by_role("button", name="Cancel")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(console.dialog.get_by_role("button", name="Approve")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(console.dialog).to_contain_text("Azure was told, and accepted.")
        assert len(posts(at)) == 1


async def test_history_filters_and_tells_notice_approval_and_duration(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "first", notice="15m", **STARTED)
        announce(at, "second", type="Freeze", notice="15m")
        await expect(page.get_by_role("article")).to_have_count(2)
        at.world.cancel("second")
        at.world.start("first")
        await expect(console.card("Reboot of vm-0")).to_contain_text("Started")
        at.world.complete("first")
        await expect(console.card("Reboot of vm-0")).to_contain_text("Completed")

        await page.get_by_role("link", name="History").click()
        rows = page.get_by_role("table", name="Scheduled events").locator("tbody tr")
        await expect(rows).to_have_count(2)
        await expect(rows.filter(has_text="Reboot")).to_contain_text(re.compile(r"1[45] min"))
        await page.get_by_label("Type").select_option("Freeze")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("No longer announced")
        await page.get_by_label("Outcome").select_option("completed")
        await expect(page.get_by_text("Nothing matches these filters")).to_be_visible()
        await page.get_by_label("Type").select_option("")
        await expect(rows).to_have_count(1)
        await page.get_by_label("VM").fill("vm-9")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Nothing matches these filters")).to_be_visible()


async def test_of_many_events_the_most_urgent_have_cards(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        for number in range(30):
            announce(at, f"event-{number}", type="Freeze", notice=f"{60 - number}m")
        await expect(page.get_by_role("heading", level=1)).to_have_text("30 events pending")
        await expect(page.get_by_role("article")).to_have_count(12)
        await expect(page.get_by_text("18 less urgent events in the history.")).to_be_visible()
        announce(at, "urgent", type="Preempt", notice="5m")
        await expect(page.get_by_role("article").first).to_contain_text("Preempt of vm-0")
