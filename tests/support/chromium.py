"""Debian's Chromium, driven by Playwright."""

import contextlib
from collections.abc import AsyncGenerator

from playwright.async_api import Browser, async_playwright
from support.debian import tool

_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)


@contextlib.asynccontextmanager
async def chromium(*flags: str) -> AsyncGenerator[Browser]:
    """A browser that talks to nobody but the pages that a test opens."""
    program = tool("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=[*_FLAGS, *flags], chromium_sandbox=False
        )
        try:
            yield browser
        finally:
            await browser.close()
