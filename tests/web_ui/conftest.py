"""Fixtures of the web UI's tests: one browser per process, one server and context per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.cli.shell import Shell
from tests.postgres_server import free_port
from tests.web_ui.browsing import DEADLINE_MS, Visit, VisitUp, launch, visiting, visiting_world

# A browser belongs to the event loop it was started on, so all tests run on the session's loop:
# their modules say `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
expect.set_options(timeout=DEADLINE_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        opened = await launch(playwright)
        yield opened
        await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, tmp_path: Path) -> AsyncIterator[Visit]:
    """Open a page at a world in this process."""
    async with visiting_world(browser, tmp_path / "home") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def visit_up(browser: Browser, tmp_path: Path) -> AsyncIterator[VisitUp]:
    """Open a page at an `agiraph up`, for tests that need its process, settings or sign-in link."""
    async with visiting(browser, Shell(tmp_path / "home"), free_port()) as opened:
        yield opened
