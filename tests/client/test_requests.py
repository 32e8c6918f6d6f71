"""Requests: errors carry the server's message, and safe requests are retried."""

import socket

import pytest

from agiraph.client import Client
from agiraph.core.domain.errors import Declined, Unreachable
from tests.api.serving import TOKEN, Served
from tests.client.proxy import proxied


async def test_a_refusal_is_raised_with_the_servers_message(client: Client) -> None:
    with pytest.raises(Declined, match=r"There is no team 'nope'\. `agiraph teams` lists") as told:
        await client.team("nope")
    assert told.value.status == 404
    with pytest.raises(Declined, match="A team needs a goal") as told:
        await client.create_team("   ")
    assert told.value.status == 422


async def test_a_wrong_token_is_reported_as_unknown(served: Served) -> None:
    async with Client(served.origin, "wrong") as client:
        with pytest.raises(Declined, match="This token is unknown") as told:
            await client.teams()
    assert told.value.status == 401


async def test_without_a_server_the_error_says_how_to_start_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Client(url, "x") as client:
            with pytest.raises(Unreachable) as told:
                await client.teams()
    assert str(told.value) == f"No agiraph is running at {url}; start it with `agiraph up`."


async def test_a_request_whose_response_was_lost_is_retried_and_acts_once(served: Served) -> None:
    async with (
        proxied(served) as proxy,
        Client(f"http://127.0.0.1:{proxy.port}", TOKEN) as client,
    ):
        proxy.swallows = 2
        team = await client.create_team("Count", start=False)
        proxy.swallows = 2
        assert team.coordinator_id is not None
        said = await client.send(team.coordinator_id, "Hello", mode="nudge")
        proxy.swallows = 1
        assert [each.id for each in await client.teams()] == [team.id]
        talk = await client.conversation(team.coordinator_id)
    assert [message.id for message in talk if message.sender == "human"] == [said.id]
    assert proxy.swallows == 0


async def test_a_request_without_idempotency_key_is_not_retried_after_a_lost_response(
    served: Served,
) -> None:
    async with (
        proxied(served) as proxy,
        Client(f"http://127.0.0.1:{proxy.port}", TOKEN) as client,
    ):
        team = await client.create_team("Count", start=False)
        proxy.swallows = 1
        with pytest.raises(Unreachable, match="may or may not have been executed"):
            await client.pause(team.id)
        assert (await client.team(team.id)).status == "paused"
        deeds = [deed.path for deed in await client.audit()]
    assert deeds == ["/api/teams", f"/api/teams/{team.id}/pause"]


async def test_reads_are_retried_while_the_server_is_unreachable(served: Served) -> None:
    async with (
        proxied(served) as proxy,
        Client(f"http://127.0.0.1:{proxy.port}", TOKEN) as client,
    ):
        await client.check()
        proxy.cut()
        proxy.swallows = 3
        assert await client.teams() == []


async def test_team_names_with_special_characters_are_escaped_in_urls(client: Client) -> None:
    names = ["a/b", "Größe & Co?", "50% #1", "..", "a b"]
    made = {name: (await client.create_team("x", name=name, start=False)).id for name in names}
    assert {name: (await client.team(name)).id for name in names if name != ".."} == {
        name: identity for name, identity in made.items() if name != ".."
    }


async def test_a_client_outside_async_with_says_how_to_open_it() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await Client("http://127.0.0.1:1", "x").teams()
