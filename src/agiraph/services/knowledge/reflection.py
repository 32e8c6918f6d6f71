"""Reflection: an agent looks back on its work and keeps what it learned. One transaction each."""

from collections.abc import Sequence
from dataclasses import dataclass

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Lease, Thread
from agiraph.domain.ids import SYSTEM
from agiraph.domain.knowledge import InsightType
from agiraph.domain.work import Budget, Queue, WorkNode
from agiraph.services.board import planning
from agiraph.services.knowledge import items
from agiraph.store import nodes, threads
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx

MOST = 3
"""Threads that are looked back on together; of more than that, the newest."""
TASK = "Look back on the work you have ended: what is worth keeping, and what is worth telling?"
TURNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedInsight:
    """An insight as the agent put it."""

    type: InsightType
    content: str
    confidence: float | None = None
    work: int = 0
    """Which piece of work it comes from, counted from 1; 0: it was not said."""


def begin(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Let an agent without work look back on what it has ended since, once on each thread.

    Whoever was hired for one task leaves with it: nobody would read what they learned.
    """
    team = TEAMS.get(tx, agent.team_id)
    if not team.learns or team.status in ("stopped", "archived"):
        return
    if agent.kind != "llm" or not agent.persistent:
        return
    found = threads.to_harvest(tx, agent.id)
    if not found:
        return
    node = nodes.unbegun(tx, Queue(agent.id, "reflection"))
    if node is None:
        node = planning.create(
            tx,
            team_id=agent.team_id,
            task=TASK,
            title="Look back",
            source="self",
            creator_id=SYSTEM,
            assignee_id=agent.id,
            payer_id=last.id,
            budget=Budget(turns=TURNS),
            lane="reflection",
        )
    found += threads.of_reflection(tx, node.id)
    found.sort(key=lambda thread: (thread.closed_at or tx.now, thread.id))
    for thread in found[:-MOST]:
        _mark(tx, thread, insights=0, passed_over=True)
    for thread in found[-MOST:]:
        THREADS.update(tx, thread.id, reflection_id=node.id)


def keep(tx: Tx, lease: Lease, learned: Sequence[LearnedInsight]) -> int:
    """Store what was learned and mark its threads, together; how many insights are new.

    What comes from words that nobody vouches for is held until a person confirms it. The agent
    has seen all threads at once, so one of them is enough.
    """
    threads.check_lease(tx, lease)
    looked_at = threads.of_reflection(tx, lease.node_id)
    left = [t for t in looked_at if THREADS.get(tx, t.id, lock=True).harvested_at is None]
    if not left:
        return 0  # it was done before, and a crash came after
    taint = next((t.tainted_by for t in looked_at if t.tainted_by), None)
    agent = AGENTS.get(tx, lease.agent_id)
    counts = dict.fromkeys((thread.id for thread in left), 0)
    for insight in learned:
        in_range = 1 <= insight.work <= len(looked_at)
        source = looked_at[insight.work - 1] if in_range else looked_at[-1]
        if source.id not in counts:
            continue
        items.learn(
            tx,
            agent,
            insight.type,
            insight.content,
            author=agent.id,
            confidence=insight.confidence,
            source_thread_id=source.id,
            held=taint is not None,
        )
        counts[source.id] += 1
    for thread in left:
        _mark(tx, thread, insights=counts[thread.id])
    if taint is not None:
        THREADS.update(tx, lease.thread_id, tainted_by=taint)
    return sum(counts.values())


def _mark(tx: Tx, thread: Thread, *, insights: int, passed_over: bool = False) -> None:
    THREADS.update(tx, thread.id, harvested_at=tx.now)
    tx.emit(
        thread.team_id,
        "thread.harvested",
        thread_id=thread.id,
        agent_id=thread.agent_id,
        insights=insights,
        passed_over=passed_over,
    )
