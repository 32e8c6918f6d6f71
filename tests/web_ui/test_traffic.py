"""Traffic: what the page loads from the server. Bytes and requests are counted, not time."""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from agiraph.core.domain.persons import OWNER
from agiraph.core.services.mail import filing
from tests.web_ui import seeding
from tests.web_ui.browsing import Traffic, go
from tests.web_ui.test_large_data_rendering import signed_in_page

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

TEAMS = 20
PAGE_BYTES, ITEM_BYTES = 40_000, 3_000
"""What a second page, and an item that arrives, may load as JSON."""


async def test_a_second_page_loads_no_inbox_and_a_new_item_comes_alone(
    browser: Browser, tmp_path: Path
) -> None:
    teams = await seeding.full_inbox(tmp_path / "home", teams_count=TEAMS, items=120)
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        traffic = Traffic()
        traffic.over(page)
        write = served.world.store.write
        await page.goto(f"{served.origin}/inbox")
        items = page.get_by_role("region", name="Items")
        await items.get_by_role("link", name="Shelf 119 is done").wait_for()
        # Rows are short: the words of an item are loaded when it is opened.
        await traffic.settled()
        assert traffic.loaded["/api/inbox/rows"] < PAGE_BYTES
        assert traffic.of("/api/inbox?") == []
        badge = page.get_by_role("navigation").get_by_role("link", name="Inbox")
        await expect(badge).to_contain_text("7")
        await items.get_by_role("link", name="Shelf 118 is done").click()
        reader = page.get_by_role("article", name="Shelf 118 is done")
        await expect(reader).to_contain_text("118 ms against 41 ms before")
        opened = items.get_by_role("link", name="Shelf 118 is done")
        await expect(opened.get_by_label("Unread")).to_have_count(0)
        await page.get_by_role("button", name="Show older items").click()
        await items.get_by_role("link", name="Shelf 60 is done").wait_for()

        traffic.clear()
        await go(page, f"{served.origin}/t/{teams[5]}/board")
        await page.get_by_role("heading", name="Board").wait_for()
        await traffic.settled()
        assert traffic.json_bytes < PAGE_BYTES
        # What was read just now may come once more, by itself.
        assert set(traffic.of("/api/inbox/rows")) == set(traffic.of("/api/inbox/rows?item="))

        # A new question: the item and its team are fetched, not the lists.
        traffic.clear()
        new = await write(lambda tx: seeding.add_item(tx, teams[7], 500, kind="question"))
        await expect(badge).to_contain_text("8")
        await traffic.settled()
        assert f"/api/inbox/rows?item={new}" in traffic.of("/api/inbox/rows")
        assert set(traffic.of("/api/inbox/rows")) == set(traffic.of("/api/inbox/rows?item="))
        assert traffic.loaded["/api/inbox/rows"] < ITEM_BYTES
        assert set(traffic.of("/api/overview")) <= {f"/api/overview?team={teams[7]}"}

        # It stands in its place in the list that was loaded before, and leaves it when it is
        # snoozed elsewhere.
        await go(page, f"{served.origin}/inbox")
        needed = items.get_by_role("region", name="Needs you").get_by_role("listitem")
        await expect(needed).to_have_count(8)
        await expect(needed.last).to_contain_text("on shelf 500 may go")
        until = served.world.clock.now() + timedelta(days=1)
        await write(lambda tx: filing.file(tx, OWNER, [new], "snooze", until=until))
        await expect(needed).to_have_count(7)
        await traffic.settled()
        assert traffic.of("/api/inbox/rows?box") == []
        assert traffic.of("/api/inbox?") == []
