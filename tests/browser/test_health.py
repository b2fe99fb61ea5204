"""What is wrong is seen on the page Health and in the strip above every page, and can be put right there."""

import re

from playwright.async_api import Page, expect
from support.bridge_process import Stage, announce, file_sink
from support.console import Console, watched
from support.until import until
from support.webhook_receiver import receiving, says


async def test_a_sink_that_is_down_makes_the_strip_red_on_every_page_and_heals(
    page: Page, tmp_path
):
    async with receiving() as pager:
        sinks = {"pager": {"type": "webhook", "url": pager.url}}
        async with watched(tmp_path, sinks=sinks) as (at, base):
            console = Console(page, base)
            await console.log_in()
            strip = page.locator("#ready")
            await expect(strip).to_contain_text("Ready.")
            await pager.down()
            announce(at, "unheard")
            await expect(strip).to_contain_text("Not ready. sink pager:")
            await expect(strip).to_have_attribute("data-state", "bad")
            card = console.card("Reboot of vm-0")
            await expect(card).to_contain_text("0 of 1 sink know")
            await expect(card).to_contain_text("pager waiting")
            await strip.locator("summary").click()
            answer = await page.request.get(
                f"{base}/readyz", headers={"Authorization": "Bearer token-of-the-operators"}
            )
            reason = (await answer.json())["reasons"][0]
            shown = strip.locator("dd").first
            await expect(shown).to_have_text(f"{reason['why']}What to do: {reason['runbook']}")

            await page.get_by_role("link", name="Health", exact=True).click()
            row = console.row("Sinks", "pager")
            await expect(row).to_contain_text("unavailable")
            await expect(row).to_have_class("bad-row")
            await pager.up()
            await expect(row).to_contain_text("connected")
            await expect(strip).to_contain_text("Ready.")


async def test_a_note_is_amber_with_what_to_do_and_shows_on_its_card(page: Page, tmp_path):
    async def corrupt(at: Stage) -> None:
        at.journal.parent.mkdir(exist_ok=True)
        at.journal.write_bytes(b"garbage " * 1000)

    async with watched(tmp_path, before=corrupt) as (at, base):
        at.world.fault("skew", skew="5m")
        console = Console(page, base)
        await console.log_in()
        strip = page.locator("#ready")
        await expect(strip).to_have_attribute("data-state", "wait")
        await expect(strip.locator(".more.wait")).to_contain_text("2 notes")
        await strip.locator("summary").click()
        for section in ("a-journal-was-set-aside", "the-clock-is-wrong"):
            await expect(strip).to_contain_text(f"What to do: docs/runbook.md#{section}")
        await strip.get_by_role("link", name="Open Health").click()
        source = page.locator("section.tile", has_text="Metadata service")
        await expect(source.locator(".badge.wait")).to_have_text("clock is wrong")
        await expect(source).to_contain_text(re.compile(r"min( \d+ s)? (ahead of|behind) Azure's"))
        journal = page.locator("section.tile", has_text="Journal")
        await expect(journal).to_contain_text("a journal was set aside as journal.db.corrupt-")


async def test_a_refused_delivery_turns_red_and_a_replay_delivers_it(page: Page, tmp_path):
    async with receiving(usual=says(400, "not like this")) as pager:
        sinks = {
            "pager": {"type": "webhook", "url": pager.url, "required": False},
            "audit-trail": file_sink(tmp_path, "audit-trail"),
        }
        async with watched(tmp_path, sinks=sinks) as (at, base):
            console = Console(page, base)
            await console.log_in()
            event = announce(at, "refused")
            card = console.card("Reboot of vm-0")
            await expect(card).to_contain_text("pager dead letter")
            await expect(card).to_contain_text("1 of 2 sinks know")

            await page.get_by_role("link", name="Health", exact=True).click()
            await expect(console.row("Sinks", "pager")).to_have_class("bad-row")
            letter = console.row("Dead letters", event[:13])
            await expect(letter).to_contain_text("400")
            await letter.get_by_role("button", name="View").click()
            await expect(console.dialog).to_contain_text("azure.scheduledevents.scheduled.v1")
            await page.keyboard.press("Escape")

            pager.usual = says(204)
            await letter.get_by_role("button", name="Replay").click()
            await expect(letter).to_have_count(0)
            await until(lambda: event in [one["subject"] for one in pager.taken], "the replay")
            await page.get_by_role("link", name="Now").click()
            await expect(card).to_contain_text("All 2 sinks know")


async def test_a_dead_letter_is_dropped_only_after_a_question(page: Page, tmp_path):
    async with receiving(usual=says(400)) as pager:
        sinks = {"pager": {"type": "webhook", "url": pager.url, "required": False}}
        async with watched(tmp_path, sinks=sinks) as (at, base):
            console = Console(page, base)
            await console.log_in()
            event = announce(at, "dropped")
            await page.get_by_role("link", name="Health", exact=True).click()
            letter = console.row("Dead letters", event[:13])
            await letter.get_by_role("button", name="Drop").click()
            await expect(console.dialog).to_contain_text("will never get this CloudEvent")
            await console.dialog.get_by_role("button", name="Cancel").click()
            await expect(letter).to_have_count(1)
            await letter.get_by_role("button", name="Drop").click()
            await console.dialog.get_by_role("button", name="Drop").click()
            await expect(letter).to_have_count(0)


async def test_a_vanished_metadata_service_is_named(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        await page.get_by_role("link", name="Health", exact=True).click()
        tile = page.locator(".tile").filter(has_text="Metadata service")
        await expect(tile).to_contain_text("answering")
        at.world.fault("status", status=500)
        await expect(tile).to_contain_text("failing")
        await expect(tile).to_contain_text(re.compile("500"))
        at.world.clear_faults()
        await expect(tile).to_contain_text("answering")


async def test_a_changed_file_is_shown_and_reloaded(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        await page.get_by_role("link", name="Health", exact=True).click()
        tile = page.locator(".tile").filter(has_text="Configuration")
        await expect(tile).to_contain_text("file in force")
        at.configure(approvals={"require": "any"})
        await expect(tile).to_contain_text("file differs")
        await tile.get_by_role("button", name="Reload").click()
        await expect(page.get_by_text(re.compile("Reloaded. Changed: .*approvals"))).to_be_visible()
        await expect(tile).to_contain_text("file in force")
        at.configure(approvals={"require": "nonsense"})
        await expect(tile).to_contain_text(re.compile("file differs|cannot be read"))
        await tile.get_by_role("button", name="Reload").click()
        await expect(console.dialog).to_contain_text("The reload was rejected")


async def test_a_refused_vote_is_listed_with_its_reason(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        event = announce(at, "late", started_for=None)
        at.world.start("late")
        await expect(console.card("Reboot of vm-0")).to_contain_text("Started")
        await page.get_by_role("link", name="Health", exact=True).click()
        await expect(page.get_by_text("No vote was refused")).to_be_visible()
        headers = {"Authorization": "Bearer token-of-the-operators"}
        vote = {"eventId": event}
        answer = await page.request.post(f"{base}/api/v1/approvals", data=vote, headers=headers)
        assert answer.status == 409
        row = console.row("Refused votes", "ops")
        await expect(row).to_contain_text("expired")
        await row.get_by_role("link").click()
        await expect(page.get_by_role("table", name="Refused votes")).to_contain_text("expired")


async def test_a_vote_that_is_refused_is_an_error_in_the_dialog(page: Page, tmp_path):
    approvals = {"allow": [{"approver": "somebody-else"}]}
    async with watched(tmp_path, approvals=approvals) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "unlisted")
        card = console.card("Reboot of vm-0")
        await card.get_by_role("button", name="Approve…").click()
        await console.dialog.get_by_role("button", name="Approve", exact=True).click()
        news = page.locator("#dialog-news.bad")
        await expect(news).to_contain_text("ops is not in approvals.allow")


async def test_a_drill_is_started_watched_and_reported_and_marked_everywhere(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        await page.get_by_role("link", name="Drill", exact=True).click()
        await page.get_by_label("Notice").fill("10m")
        await page.get_by_label("Description").fill("Tuesday")
        await page.get_by_role("button", name="Start the drill").click()
        report = page.get_by_role("region", name="Report")
        await expect(report).to_contain_text("The drill is still running.")
        await expect(report.get_by_role("row").filter(has_text="audit-trail")).to_contain_text(
            "delivered"
        )

        await page.get_by_role("link", name="Now").click()
        card = page.get_by_role("article", name="Drill: Reboot of vm-0")
        await expect(card.locator(".badge.drill")).to_be_visible()
        await card.get_by_role("button", name="Approve").click()
        await expect(console.dialog).to_contain_text("A drill never reaches Azure.")
        await console.dialog.get_by_role("button", name="Approve").click()
        await expect(console.dialog).to_contain_text("The vote is recorded.")
        await page.keyboard.press("Escape")
        await expect(card).to_contain_text("Completed")

        await page.get_by_role("link", name="History").click()
        row = console.row("Scheduled events", "Reboot")
        await expect(row.locator(".badge.drill")).to_be_visible()
        await page.get_by_role("link", name="Drill", exact=True).click()
        await expect(report).to_contain_text("Passed:")
        await expect(report.get_by_role("row").filter(has_text="ops")).to_contain_text("approve")
        assert at.simulator.world.document().events == ()
