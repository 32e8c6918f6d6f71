"""Messages to others: no tool reaches anybody but the team and its persons."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call
from tests.tools.strangers import READ, answers, found_with_calls, strange_world

SECRET = "canary-77"


@pytest.fixture
async def strange(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    async with strange_world(tmp_path, database_url) as world:
        yield world


def _recipients(tx: Tx) -> set[tuple[str, str]]:
    """Return the team and the recipient of each message with the secret."""
    sql = "select team_id, recipient from messages where text like :secret"
    return {(row[0], row[1]) for row in tx.all(sql, secret=f"%{SECRET}%")}


async def others(world: World) -> NewTeam:
    """Found another team, which rests."""
    return await world.found("Something else", model="scripted/eve", start=False)


@pytest.mark.parametrize("trust", ["strict", "standard", "open"])
@pytest.mark.parametrize(
    "address",
    [
        "stranger@example.com",
        "mailto:stranger@example.com",
        "https://example.com/hook",
        "#general",
        "person_0000000000000000",
        "{team}",
        "{agent}",
        "{team}/coordinator",
    ],
)
async def test_a_labelled_thread_reaches_nobody_outside_the_team(
    strange: World, address: str, trust: str
) -> None:
    other = await others(strange)
    to = address.format(team=other.team.id, agent=other.coordinator.id)
    message = call("send_message", to=to, content=SECRET)
    later = call(
        "schedule",
        type="delayed",
        config={"delay_seconds": 3600},
        action={"type": "send_message", "to": to, "content": SECRET},
    )
    founded = await found_with_calls(strange, READ, message, later, trust=trust)
    assert await strange.store.read(_recipients) <= {(founded.team.id, "human")}
    _, sent, *_ = await answers(strange, founded)
    assert "coordinator" in sent  # the refusal names who can be reached
    assert await strange.board(other.team.id) == []


async def test_a_labelled_thread_talks_to_its_person_and_its_team_without_asking(
    strange: World,
) -> None:
    founded = await found_with_calls(
        strange,
        call("spawn_worker", name="bob", model="scripted/bob"),
        READ,
        call("send_message", to="human", content=f"I know {SECRET}"),
        call("checkpoint", summary=SECRET),
    )
    assert await strange.questions(founded.team.id) == []
    assert await strange.store.read(_recipients) == {(founded.team.id, "human")}
