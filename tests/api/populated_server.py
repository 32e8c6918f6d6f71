"""Populated server: a server in a thread, and teams that have one of everything the API shows."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import UNKNOWN
from agiraph.core.services import access
from agiraph.core.services.lifecycle import conversation, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import definitions
from agiraph.features.knowledge import rows as known
from agiraph.features.knowledge.verbs import items
from agiraph.models.base import Request
from agiraph.testing import Says, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.api.serving import Served, serving


def scripted_reply(request: Request) -> Says:
    """At work, ask a question, then finish with its answer; in a conversation, say yes."""
    tools = {tool.name for tool in request.tools}
    if request.schema is not None or "ask_human" not in tools:
        return says("Yes.")
    if any(turn.role == "tool" for turn in request.transcript.turns):
        return says(call("finish", summary="done"))
    return says(call("ask_human", question="Which of them?"))


class PopulatedServer:
    def __init__(self, served: Served, loop: asyncio.AbstractEventLoop) -> None:
        self.served = served
        self._loop = loop

    def run(self, act: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the server's event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(act, self._loop).result(60)

    def create_team(self) -> dict[str, str]:
        """Create a team; return the ids of its coordinator, node, question and so on."""
        return self.run(self._create_team())

    async def _create_team(self) -> dict[str, str]:
        world = self.served.world
        await world.store.write(teams.resume_all)  # a request may have stopped all work
        founded = await world.found("Find the cheapest")
        await world.chat(founded.coordinator.id, "How far are you?")
        await world.settle()
        [question] = await world.questions(founded.team.id)
        assert question.node_id is not None
        thread = await world.thread(question.node_id)
        learned = await world.store.write(_add_knowledge_and_triggers, founded)
        notes = world.path / "teams" / founded.team.id / "memory" / "knowledge"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / "prices.md").write_text("# Prices\n")
        return {
            "team": founded.team.id,
            "agent": founded.coordinator.id,
            "node": question.node_id,
            "thread": thread.id,
            "question": question.id,
            "path": "knowledge/prices.md",
            **learned,
        }


def _add_knowledge_and_triggers(tx: Any, founded: NewTeam) -> dict[str, str]:
    agent = founded.coordinator
    memory = items.remember(tx, agent, "Likes figures.", author=OWNER)
    insight = items.learn(tx, agent, "fact", "Prices fall in May.", author=OWNER)
    unverified = items.learn(tx, agent, "fact", "Buy now.", author=agent.id, label=UNKNOWN)
    made = definitions.create(tx, agent_id=agent.id, type="webhook", config={})
    token = access.issue(tx, OWNER, kind="token", name="for a test", scope="read")
    conversation.say(tx, agent.id, "And the second?", person_id=OWNER)
    return {
        "memory": memory.id,
        "insight": insight.id,
        "unverified": unverified.id,
        "change": known.changes(tx, agent.id, limit=1)[0].id,
        "trigger": made.trigger.id,
        "secret": made.secret or "",
        "token": token.token.id,
    }


@contextlib.contextmanager
def populated_server(path: Path, **more: Any) -> Iterator[PopulatedServer]:
    """A served world whose event loop runs in a thread, for clients that block."""
    ready: list[PopulatedServer] = []
    begun, over = threading.Event(), asyncio.Event()

    async def serve_until_over() -> None:
        async with serving(path, **more) as served:
            served.world.model("ada", ReactiveModel("scripted/ada", scripted_reply))
            ready.append(PopulatedServer(served, asyncio.get_running_loop()))
            begun.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve_until_over()), daemon=True)
    thread.start()
    assert begun.wait(60)
    try:
        yield ready[0]
    finally:
        ready[0]._loop.call_soon_threadsafe(over.set)
        thread.join(60)
