"""One browser for all tests of the console, and a fresh profile for each of them."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page
from support.chromium import chromium

NAMES = "MAP rebound.example 127.0.0.1, MAP attacker.example 127.0.0.1"
"""Names that lead to this machine, as an attacker's name server would say."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests share the loop of the browser, and may take long on a busy machine."""
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.timeout(150))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium(f"--host-resolver-rules={NAMES}") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncGenerator[BrowserContext]:
    made = await browser.new_context(viewport={"width": 1280, "height": 860})
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> AsyncGenerator[Page]:
    """A page without errors: what it throws, or what its policy forbids, fails the test."""
    made = await context.new_page()
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on(
        "console",
        lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None,
    )
    yield made
    assert errors == []
