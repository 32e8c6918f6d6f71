"""Known: what the agents of a world know."""

from agiraph.api.feature_views.known import Insight, Memory
from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.ids import AgentId
from agiraph.features.knowledge.verbs import items
from agiraph.testing import World


async def memories(world: World, agent_id: AgentId) -> list[Memory]:
    """Return what an agent remembers of its person."""
    return await world.store.read(items.memories, agent_id, limit=10_000)


async def insights(
    world: World, agent_id: AgentId, *, status: KnowledgeStatus = "active"
) -> list[Insight]:
    """Return what an agent knows that it, its specialist or its team has learned."""
    return await world.store.read(items.insights, agent_id, status=status, limit=10_000)
