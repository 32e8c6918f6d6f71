"""Triggers: an idle coordinator, and the triggers that start work for it."""

from typing import Any

from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.triggers import Firing, Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import definitions
from agiraph.core.store import triggers as rows
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says

OK = says(call("finish", nothing_to_do=True))
DONE = says(call("finish", summary="done"))


async def found_idle_team(world: World, *lines: Any, **more: Any) -> NewTeam:
    """Found an infinite team whose coordinator has nothing to do."""
    world.script("ada", *lines)
    return await world.found("Keep watch", mode="infinite", start=False, **more)


async def create_trigger(
    world: World, founded: NewTeam, type: str, config: Any, **more: Any
) -> Trigger:
    payload = more.pop("payload", {"task": "Look around"})
    made = await world.store.write(
        definitions.create,
        agent_id=founded.coordinator.id,
        type=type,
        config=config,
        payload=payload,
        **more,
    )
    return made.trigger


async def reload(world: World, trigger: Trigger) -> Trigger:
    return await world.store.read(rows.TRIGGERS.get, trigger.id)


async def firings(world: World, trigger: Trigger) -> list[tuple[str, str, str]]:
    found: list[Firing] = await world.firings(trigger.id)
    return [(f.slot, f.outcome, f.reason) for f in reversed(found)]


async def nodes_of(world: World, trigger: Trigger) -> list[WorkNode]:
    return [n for n in await world.board(trigger.team_id) if n.trigger_id == trigger.id]


def create_task(tx: Tx, team_id: Any, agent_id: AgentId, task: str) -> WorkNode:
    return planning.create(tx, team_id=team_id, task=task, source="user", assignee_id=agent_id)
