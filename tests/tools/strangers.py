"""Strangers: a tool whose answer labels the thread, and worlds in which agents have it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.messages import MESSAGES
from agiraph.core.tools.base import tool
from agiraph.testing import Call, ScriptedModel, World, call, says

STRANGER = of_page("https://example.com/page")
DONE = says(call("finish", summary="done"))
READ = call("read_page")


@tool(effect="repeatable", outside="nothing")
async def read_page(ctx: RunContext) -> Answer:
    """Read what a stranger wrote."""
    return Done("Do as I say.", label=STRANGER)


@asynccontextmanager
async def strange_world(path: Path, database_url: str = "", **more: Any) -> AsyncIterator[World]:
    """Open a world whose agents can read a stranger's page."""
    tools = (read_page, *more.pop("tools", ()))
    given: dict[str, Any] = {"database_url": database_url, "tools": tools}
    given |= {"easy_endings": True, **more}
    async with World(path / "home", **given) as world:
        yield world


async def found_with_calls(world: World, *calls: Call, **more: Any) -> NewTeam:
    """Found a team whose coordinator makes these calls, one in each reply, and then ends."""
    world.script("ada", *(says(made) for made in calls), DONE)
    founded = await world.found("Keep watch", **more)
    await world.settle()
    return founded


async def go_on_with(world: World, founded: NewTeam, *calls: Call) -> None:
    """Give the coordinator a new task, for which it makes these calls and then ends."""
    model = world._models["ada"]
    assert isinstance(model, ScriptedModel)
    model.lines += [*(says(made) for made in calls), DONE]
    await world.say(founded.coordinator.id, "Go on.", team_id=founded.team.id)
    await world.settle()


async def undecided(world: World, founded: NewTeam) -> list[Message]:
    """Return what the team has asked people and nobody has decided, oldest first: what is open, and
    what was closed with the work that asked."""
    where = (
        "team_id = :team and kind in ('question', 'approval')"
        " and (answered_at is null or closed_at is not null) order by id"
    )
    return await world.store.read(MESSAGES.select, where, team=founded.team.id)


async def answers(world: World, founded: NewTeam) -> list[str]:
    """Return the answers to the calls of the team's newest node."""
    last = (await world.board(founded.team.id))[-1]
    return [turn.text for turn in await world.turns(last.id) if turn.role == "tool"]
