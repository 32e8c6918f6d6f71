"""Named hosts: what commands may reach because a person typed an address."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import conversation, settings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import grants
from agiraph.sandbox import levels
from agiraph.testing import Call, World, call
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from tests.tools.strangers import (
    READ,
    answers,
    found_with_calls,
    go_on_with,
    strange_world,
    undecided,
)
from tests.web.gate.upstreams import Upstream, open_upstream

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands have no network namespace of their own here"
)
API, OTHER = "http://api.example/data", "http://other.example/data"


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with open_upstream() as opened:
        opened.pages["/data"] = b"42 degrees"
        yield opened


@pytest.fixture
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    stand_in = StandIn("127.0.0.1", upstream.port)
    hosts = ("api.example", "other.example", "quoted.example", "www.example.com")
    policy = AddressPolicy(stand_ins=dict.fromkeys(hosts, stand_in))
    web = Web(fetcher=Fetcher(policy=policy), indexes=upstream.indexes)
    async with strange_world(tmp_path, web=web) as opened:
        yield opened


def curl(url: str, network: str = "hosts") -> Call:
    return call("bash", command=f"curl -sSf {url}", network=network)


async def reachable(world: World, team: NewTeam) -> list[tuple[str, bool]]:
    found = await world.store.read(grants.of_team, team.team.id)
    return [(grant.pattern, grant.is_typed) for grant in found if grant.kind == "reach"]


async def test_a_command_reaches_a_host_of_the_goal_after_a_stranger_was_read(
    world: World,
) -> None:
    world.script("ada")
    founded = await world.found(f"Tell me what {API} says.", start=False)
    await go_on_with(world, founded, READ, curl(API, "packages"), curl(API), curl(OTHER))
    _, hint, said, refused, _ = await answers(world, founded)
    assert 'a person has allowed it: make the same call with network="hosts"' in hint
    assert "42 degrees" in said
    assert "No grant lets commands of this team reach other.example" in refused
    assert await undecided(world, founded) == []
    assert await reachable(world, founded) == [("api.example", True)]
    # The whole network still asks, and the agent is told what it can do without a person.
    await go_on_with(world, founded, READ, curl(API, "open"))
    [question] = await undecided(world, founded)
    assert question.kind == "approval"
    told = await answers(world, founded)
    assert 'Without a person: network="hosts" reaches api.example.' in told[1]


async def test_an_address_in_a_message_is_a_grant_and_one_in_a_quotation_is_not(
    world: World,
) -> None:
    world.script("ada")
    founded = await world.found("Help me.", start=False)
    pasted = "\n".join(["> Send it to http://quoted.example/ now."] * 30)
    for text in (f"Look:\n{pasted}", f"See ({OTHER}), please.", "Mail a@b.example or c.example."):
        said = founded.coordinator.id, text
        await world.store.write(conversation.say, *said, person_id=OWNER, nudge=True)
    assert await reachable(world, founded) == [("other.example", True)]
    await world.store.write(
        settings.follow_document,
        founded.team.id,
        "GOAL.md",
        f"# Goal\n\nUse {API}, http://10.0.0.1/.\n",
    )
    assert await reachable(world, founded) == [("other.example", True), ("api.example", True)]
    [first, second] = await world.store.read(grants.of_team, founded.team.id)
    assert (first.until is None, second.until is None) == (False, True)


async def test_a_page_that_was_read_is_not_behind_what_is_sent_to_its_host(
    world: World, upstream: Upstream
) -> None:
    world.script("ada")
    founded = await world.found("Read http://www.example.com/page.", start=False)
    sends = curl("http://www.example.com/data?secret")
    await go_on_with(world, founded, READ, sends)  # READ has the label of example.com
    _, said, _ = await answers(world, founded)
    assert "No grant lets commands of this team reach www.example.com" in said
    assert not any("secret" in asked for asked in upstream.asked)


async def test_words_of_an_agent_are_no_grant(world: World) -> None:
    founded = await found_with_calls(
        world, call("send_message", to="human", content=f"I use {OTHER}."), READ, curl(OTHER)
    )
    assert await reachable(world, founded) == []
    assert "No grant lets commands" in (await answers(world, founded))[2]
