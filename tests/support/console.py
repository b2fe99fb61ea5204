"""The console of a real bridge, as somebody in front of a browser meets it."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect
from support.bridge_process import Stage, file_sink, stage

from bridge.simulator import Scenario

PATIENCE = 30_000
"""The longest wait for something on a page, in milliseconds; only a test that fails waits so long."""
expect.set_options(timeout=PATIENCE)

OPS = "token-of-the-operators"
READER = "token-of-a-dashboard"
TOKENS = [
    {"name": "ops", "token": OPS, "scopes": ["read", "approve", "operate"]},
    {"name": "dashboard", "token": READER, "scopes": ["read"]},
]


@dataclass
class Console:
    """One page of the console, and the bridge behind it."""

    page: Page
    base: str

    async def open(self, place: str = "") -> None:
        """Go to a page of the console, and wait until it has its data."""
        await self.page.goto(f"{self.base}/{place}")
        await expect(self.page.locator("#ready")).not_to_have_attribute("data-state", "unknown")

    async def log_in(self, token: str = OPS) -> None:
        await self.page.goto(self.base)
        await self.page.get_by_role("button", name="Log in", exact=True).click()
        await self.page.get_by_label("Token").fill(token)
        await self.page.keyboard.press("Enter")
        await expect(self.page.get_by_role("button", name="Log out")).to_be_visible()
        await expect(self.page.locator("#ready")).not_to_have_attribute("data-state", "unknown")

    def card(self, name: str) -> Locator:
        """The card of the event with that title, such as `Reboot of vm-0`."""
        return self.page.get_by_role("article", name=name)

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def row(self, table: str, name: str) -> Locator:
        return self.page.get_by_role("table", name=table).get_by_role("row").filter(has_text=name)


@contextlib.asynccontextmanager
async def watched(
    folder: Path,
    *,
    vms: Sequence[str] = ("vm-0",),
    tokens: Sequence[dict[str, Any]] = TOKENS,
    sinks: dict[str, Any] | None = None,
    before: Callable[[Stage], Awaitable[None]] | None = None,
    **config: Any,
) -> AsyncGenerator[tuple[Stage, str]]:
    """A bridge as a process of its own that has answered, and the address of its console.

    *before* runs when everything is there but the bridge.
    """
    world = Scenario.model_validate({"vms": [{"name": name} for name in vms]})
    config["http"] = {"listen": "127.0.0.1:0", "tokens": list(tokens)}
    config["sinks"] = sinks or {"audit-trail": file_sink(folder, "audit-trail")}
    async with stage(folder, world, quick=True, **config) as at:
        if before is not None:
            await before(at)
        await at.start()
        await at.until_said("http.listening")
        await at.polled()
        yield at, f"http://{at.said('http.listening')[0]['http']}"
