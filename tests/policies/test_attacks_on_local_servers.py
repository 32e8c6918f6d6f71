"""Attacks on local servers: no order of anybody opens an address inside the machine."""

from pathlib import Path

import pytest

from tests.policies.attacks.local_network import HOSTS, INSIDE, inner_server, web_with
from tests.policies.attacks.stage import ALLOW_ALL, open_stage
from tests.policies.obedient_model import do


@pytest.mark.parametrize("spelling", [*HOSTS, "by a redirect"])
async def test_nobody_opens_an_address_inside_the_machine(spelling: str, tmp_path: Path) -> None:
    """Not by a page's order, not by a person's, and not in a team whose rules allow all tools."""
    async with (
        inner_server() as (port, received),
        open_stage(tmp_path, web=web_with("127.0.0.1")) as stage,
    ):
        run = await stage.team(spelling, "standard")
        url = f"http://{HOSTS.get(spelling, INSIDE)}:{port}/admin"
        if spelling == "by a redirect":
            stage.sink.moved["/moved"] = url
            url = run.url("/moved")
        await run.meets(do("web_fetch", url=url), do("web_fetch", url=url, save_as="a"))
        await run.orders(do("web_fetch", url=url))
        allowed = await stage.team(spelling, "open", permissions=ALLOW_ALL, mode="person")
        await allowed.meets(do("web_fetch", url=url), do("web_fetch", url=url, save_as="a"))
    assert bytes(received) == b""


async def test_the_same_address_is_opened_where_a_test_allows_it(tmp_path: Path) -> None:
    async with (
        inner_server() as (port, received),
        open_stage(tmp_path, web=web_with("127.0.0.1", INSIDE)) as stage,
    ):
        run = await stage.team("twin", "standard")
        await run.orders(do("web_fetch", url=f"http://{INSIDE}:{port}/admin"))
    assert received.startswith(b"GET /admin ")
