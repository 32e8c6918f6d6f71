"""Reflection: queue an agent's review of its ended threads, and store the insights it finds."""

from collections.abc import Sequence
from dataclasses import dataclass

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Lease, Thread
from agiraph.domain.events.knowledge import ThreadHarvested
from agiraph.domain.ids import SYSTEM
from agiraph.domain.knowledge import InsightType
from agiraph.domain.labels import join
from agiraph.domain.work import Budget, Queue, WorkNode
from agiraph.redaction import mask_secrets
from agiraph.services.board import planning
from agiraph.services.knowledge import items
from agiraph.store import nodes, threads
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx

MAX_THREADS = 3
"""Threads that one reflection reviews; of more, the newest."""
TASK = "Look back on the work you have ended: what is worth keeping, and what is worth telling?"
TURNS = 8
"""Turns of a reflection: two questions with up to three attempts each, and some room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedInsight:
    """An insight as the agent stated it."""

    type: InsightType
    content: str
    confidence: float | None = None
    work: int = 0
    """The number of the reviewed thread it comes from, counted from 1; 0 if the agent gave none."""


def start(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Queue a reflection of an idle agent on its ended threads; each thread is reviewed once.

    Agents hired for one task do not reflect: they leave, and nobody would use the insights.
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
    # The caller holds the agent's row lock, so the reflection cannot be claimed
    # while threads are added.
    found += threads.of_reflection(tx, node.id)
    found.sort(key=lambda thread: (thread.closed_at or tx.now, thread.id))
    for thread in found[:-MAX_THREADS]:
        _mark(tx, thread, insights=0, passed_over=True)
    for thread in found[-MAX_THREADS:]:
        THREADS.update(tx, thread.id, reflection_id=node.id)


def store_insights(tx: Tx, lease: Lease, learned: Sequence[LearnedInsight]) -> int:
    """Store insights and mark the reviewed threads in one transaction. Return how many are new.

    What comes from words that nobody vouches for is held until a person confirms it. The agent
    has read all threads at once, so a single labelled thread labels all insights.
    """
    threads.check_lease(tx, lease)
    reviewed = threads.of_reflection(tx, lease.node_id)
    left = [t for t in reviewed if THREADS.get(tx, t.id, lock=True).harvested_at is None]
    if not left:
        return 0  # a crash came after the commit of the first attempt
    label = join(thread.label for thread in reviewed)
    agent = AGENTS.get(tx, lease.agent_id)
    counts = dict.fromkeys((thread.id for thread in left), 0)
    for insight in learned:
        in_range = 1 <= insight.work <= len(reviewed)
        source = reviewed[insight.work - 1] if in_range else reviewed[-1]
        if source.id not in counts:
            continue
        items.learn(
            tx,
            agent,
            insight.type,
            mask_secrets(insight.content),
            author=agent.id,
            confidence=insight.confidence,
            source_thread_id=source.id,
            label=label,
        )
        counts[source.id] += 1
    for thread in left:
        _mark(tx, thread, insights=counts[thread.id])
    if label:
        THREADS.update(tx, lease.thread_id, label=label)
    return sum(counts.values())


def _mark(tx: Tx, thread: Thread, *, insights: int, passed_over: bool = False) -> None:
    THREADS.update(tx, thread.id, harvested_at=tx.now)
    tx.emit(
        thread.team_id,
        ThreadHarvested(
            thread_id=thread.id,
            agent_id=thread.agent_id,
            insights=insights,
            passed_over=passed_over,
        ),
    )
