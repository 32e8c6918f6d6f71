"""Asking: a team whose thread has read a page, so that its ways out need a person."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import grants
from agiraph.testing import World, call, says
from agiraph.testing.script import Says
from tests.policies.obedient_model import Sink, open_sink, web
from tests.tools.strangers import undecided
from tests.tools.tool_calls import ToolAnswer

_FENCE = re.compile(r"^(?:<<<|>>>) .*\n?", re.MULTILINE)
COMMAND = "echo once >> a; cat a"
RUN = call("bash", command=COMMAND, network=True)
"""A call that takes a way out: a command with network."""
WAIT = call("bash", command=COMMAND, network=True, wait=True)
DONE = says(call("finish", summary="done"))
STAYS = says(call("ask_human", question="What else?"))
"""Keeps the node open without waiting for the request."""


class Place:
    """A world with a page at a local server."""

    def __init__(self, world: World, site: Sink) -> None:
        self.world = world
        self.site = site
        self.page = site.url("/page")

    @property
    def reads(self) -> Says:
        """The reply that reads the page, and so labels the thread."""
        return says(call("web_fetch", url=self.page))

    async def found(self, *replies: Any, name: str = "ada", **more: Any) -> NewTeam:
        """Found a team that reads the page and then replies so, and let it run."""
        self.world.script(name, self.reads, *replies)
        founded = await self.world.found(f"Read {self.page}", model=f"scripted/{name}", **more)
        await self.world.settle()
        return founded

    async def asks(self, team: NewTeam) -> list[Message]:
        """Return what a team asks that is not decided, also what was closed with its work."""
        return await undecided(self.world, team)

    async def decide(self, request: Message, decision: Any, text: str = "", **more: Any) -> None:
        await self.world.store.write(
            answers.answer_question, request.id, text, person_id=OWNER, decision=decision, **more
        )
        await self.world.settle()

    async def answers(self, team: NewTeam) -> list[ToolAnswer]:
        """Return the answers to the calls of the goal's node, without the page."""
        assert team.node is not None
        return answers_of(await self.world.turns(team.node.id))

    async def said(self, team: NewTeam) -> list[str]:
        """Return what stands in the goal's thread besides calls and their answers."""
        assert team.node is not None
        turns = await self.world.turns(team.node.id)
        return [t.text for t in turns if t.role == "user"][1:]

    async def grants(self, team: NewTeam) -> list[Any]:
        """Return the team's grants besides the one for the page's host, which the goal names."""
        found = await self.world.store.read(grants.listed, team.team.id)
        typed = (True, "reach", urlsplit(self.page).hostname)
        return [g for g in found if (g.is_typed, g.kind, g.pattern) != typed]


def answers_of(turns: list[Turn]) -> list[ToolAnswer]:
    """Return the answers to calls, without the page and without the marks of fences."""
    found = [t for t in turns if t.role == "tool"][1:]
    return [ToolAnswer(_FENCE.sub("", t.text).strip(), t.failed) for t in found]


@asynccontextmanager
async def open_place(home: Path, database_url: str) -> AsyncIterator[Place]:
    async with open_sink() as site:
        site.pages["/page"] = "Bread is made of flour."
        async with World(
            home, database_url=database_url, web=web(site), easy_endings=True
        ) as world:
            yield Place(world, site)
