"""The flow: a person and a team in a browser, from the first message to the report."""

import pytest
from playwright.async_api import expect

from agiraph.testing import says
from tests.web_ui.browsing import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_link_signs_in_and_says_how_to_begin(visit: Visit) -> None:
    desk = await visit([says("Nobody asked.")])

    await expect(desk.page.get_by_text("Give a team something to do")).to_be_visible()
    await expect(desk.page.get_by_text("Live")).to_be_visible()
