"""Screenshots: every screen of a busy team in both themes and three widths, from a real browser.

Next to each picture lies a text with the tree that a screen reader reads.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright, expect

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.cli.shell import Shell  # noqa: E402
from tests.postgres_server import free_port  # noqa: E402
from tests.web_ui import lively  # noqa: E402
from tests.web_ui.browsing import DEADLINE_MS, DESKTOP, PHONE, Desk, launch, visiting  # noqa: E402
from tests.web_ui.screens import Screen, screens  # noqa: E402

SETTLE_MS = 500
"""Parts of a screen, such as Markdown, are loaded after its first text is visible."""
LOOKS: dict[str, dict[str, Any]] = {
    "light": {**DESKTOP, "color_scheme": "light"},
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "narrow": {**DESKTOP, "viewport": {"width": 1024, "height": 768}, "color_scheme": "light"},
    "phone": {**PHONE, "color_scheme": "light", "device_scale_factor": 2},
}


async def take(page: Page, screen: Screen, path: Path) -> None:
    await screen.show(page)
    await page.evaluate("document.fonts.ready")
    await page.wait_for_timeout(SETTLE_MS)
    await page.screenshot(path=path, animations="disabled", caret="hide")
    path.with_suffix(".txt").write_text(await page.locator("body").aria_snapshot())
    print(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path, flush=True)


async def take_all(desk: Desk, folder: Path, only: list[str]) -> None:
    team = await lively.begin(desk)
    for look, options in LOOKS.items():
        page = await desk.opens(**options)
        for screen in await screens(desk, team):
            if not only or f"{screen.name}-{look}" in only or look in only:
                await take(page, screen, folder / f"{screen.name}-{look}.png")
        await page.close()


async def main(folder: Path, only: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(Path(home) / "home")
        async with async_playwright() as playwright:
            browser = await launch(playwright)
            async with visiting(browser, shell, free_port()) as visit:
                await take_all(
                    await visit(lively.Lively().play, settings=lively.SETTINGS), folder, only
                )
            await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder for the screenshots")
    parser.add_argument("only", nargs="*", help="board-dark, phone and so on; default: all")
    given = parser.parse_args()
    os.environ.setdefault("TZ", "UTC")
    expect.set_options(timeout=DEADLINE_MS)
    asyncio.run(main(given.folder.resolve(), given.only))
