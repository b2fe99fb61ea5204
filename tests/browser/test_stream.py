"""The stream: a lost connection is shown, heals by itself, and nothing that happened meanwhile is missed."""

from playwright.async_api import Page, Request, expect
from support.bridge_process import announce
from support.console import Console, watched
from support.tcp_proxy import tcp_proxied


async def test_a_lost_connection_is_shown_and_resumes_where_it_was(page: Page, tmp_path):
    resumed: list[str] = []

    def note(request: Request) -> None:
        if "/stream" in request.url and (last := request.headers.get("last-event-id")):
            resumed.append(last)

    page.on("request", note)
    async with watched(tmp_path) as (at, base):
        host, _, port = base.removeprefix("http://").partition(":")
        async with tcp_proxied(host, int(port)) as proxy:
            console = Console(page, f"http://{proxy.address}")
            await console.log_in()
            live = page.locator("#live")
            await expect(live).to_have_text("Live")
            announce(at, "before")
            await expect(console.card("Reboot of vm-0")).to_be_visible()

            await proxy.down()
            await expect(live).to_have_text("Reconnecting")
            await expect(page.locator("#ready")).to_contain_text("The bridge does not answer.")
            await expect(console.card("Reboot of vm-0")).to_be_visible()
            announce(at, "meanwhile", type="Freeze")
            await at.polled()
            await proxy.up()
            await expect(live).to_have_text("Live")
            await expect(console.card("Freeze of vm-0")).to_be_visible()
            await expect(page.locator("#ready")).to_contain_text("Ready.")
            assert resumed != []


async def test_a_restart_of_the_bridge_asks_for_a_log_in_and_goes_on(page: Page, tmp_path):
    async with watched(tmp_path) as (at, base):
        console = Console(page, base)
        await console.log_in()
        announce(at, "lasting")
        await expect(console.card("Reboot of vm-0")).to_be_visible()
        at.configure(http={**at.config["http"], "listen": base.removeprefix("http://")})
        await at.kill()
        await expect(page.locator("#live")).to_have_text("Reconnecting")
        await at.start()
        await expect(page.get_by_text("Log in to see this bridge")).to_be_visible()
        await console.log_in()
        await expect(console.card("Reboot of vm-0")).to_be_visible()
        await expect(page.locator("#live")).to_have_text("Live")
