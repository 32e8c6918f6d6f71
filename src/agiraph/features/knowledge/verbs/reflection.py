"""Reflection: queue an agent's review of ended threads, and store the insights it finds."""

from collections.abc import Sequence
from typing import NamedTuple

from agiraph.api.feature_views.known import Insight, InsightType
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease, Thread
from agiraph.core.domain.events.knowledge import ThreadHarvested
from agiraph.core.domain.ids import SYSTEM, NodeId, TeamId
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.text.passages import Owner
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Budget, NodeStatus, Queue, WorkNode
from agiraph.core.domain.work_kinds import WorkKind
from agiraph.core.services.board import planning, texts
from agiraph.core.services.board.feature_verbs import KindVerbs
from agiraph.core.store import nodes, threads
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import GENERAL_ROLES, Relation, of_learned
from agiraph.features.knowledge.rows import INSIGHTS
from agiraph.features.knowledge.verbs import items
from agiraph.features.knowledge.verbs.merging import ADD
from agiraph.redaction import mask_secrets

MAX_THREADS = 5
"""Threads that one reflection reviews; further ones are reviewed by further reflections."""
MAX_REPLACED = 5
"""Known insights that one reflection may replace. A model that replaces more is probably wrong, so
from then on old and new stand side by side as a contradiction."""
MOST_KNOWN = 10_000
"""Known insights of one owner among which the nearest are searched."""
TASK = "Look back on the work that has ended: what is worth keeping, and what is worth telling?"
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
    relation: Relation = ADD
    """How it relates to a known insight, in the model's words. It is checked before it counts."""


def start(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Queue a reflection on ended threads after the agent's last node; each is reviewed once.

    An agent that was hired for one task reviews its thread after it has left the team. While a
    reflection of the same kind of agent is open, nothing is queued: that one goes on with what is
    left when it ends, so that several threads are reviewed by one call of a model. Threads of
    programs, which have no model, and what is left of other agents that have gone, are reviewed by
    the coordinator. The caller holds the agent's row lock.
    """
    team = TEAMS.get(tx, agent.team_id)
    if not team.learns or team.status in ("stopped", "archived") or not agent.has_model:
        return
    kind = _kind(agent)
    if kind is not None and rows.reflects_as(tx, agent.team_id, kind, beside=agent.id):
        return
    everyone = agent.role == "coordinator"
    found = rows.awaiting_reflection(tx, agent, role=kind, everyone=everyone)
    node = nodes.unbegun(tx, Queue(agent.id, "reflection"))
    if node is not None and node.kind is not KINDS["reflection"]:
        node = None  # the summary of a conversation waits in the same lane
    batch = _batch(found, [] if node is None else rows.of_reflection(tx, node.id))
    if not batch:
        return
    if node is None:
        node = planning.create(
            tx,
            team_id=agent.team_id,
            task=TASK,
            title=texts.REFLECTION_TITLE,
            source="self",
            creator_id=SYSTEM,
            assignee_id=agent.id,
            payer_id=last.id if last.is_work else last.payer_id,
            budget=Budget(turns=TURNS),
            kind=KINDS["reflection"],
        )
    # The caller's lock keeps this reflection from being claimed while threads are added. A thread
    # of another agent may be taken by another reflection at the same time: its row lock decides.
    for thread in sorted(batch, key=lambda thread: thread.id):
        if THREADS.get(tx, thread.id, lock=True).reflection_id == thread.reflection_id:
            THREADS.update(tx, thread.id, reflection_id=node.id)


def go_on(tx: Tx, agent: Agent, ended: WorkNode) -> None:
    """Queue another reflection if the one that has ended left threads without a review.

    A failed reflection queues nothing, so that a model that is down is not called in a loop; the
    next work that ends queues one. The caller holds the agent's row lock.
    """
    if ended.status is NodeStatus.COMPLETED:
        start(tx, agent, ended)


def _kind(agent: Agent) -> str | None:
    """Return the role whose threads this agent reviews together with its own; None for an agent
    that learns for itself only."""
    is_general = agent.role in GENERAL_ROLES
    return None if is_general and agent.persistent else agent.role


def _batch(found: Sequence[Thread], taken: Sequence[Thread]) -> list[Thread]:
    """Return the oldest threads that may be reviewed together.

    Clean and labelled threads are not mixed: a model that reads both could repeat untrusted text
    as its own, so all insights of a mixed review would be unverified.
    """
    if not found:
        return []
    kind = bool((taken or found)[0].label)
    alike = [thread for thread in found if bool(thread.label) is kind]
    return alike[: max(0, MAX_THREADS - len(taken))]


class Known(NamedTuple):
    """What is known to those whose threads are reviewed."""

    valid: list[Insight]
    removed: list[Insight]
    """Insights that were removed: they must not be learned again."""


def known(tx: Tx, node_id: NodeId) -> Known:
    """Return the insights that a reflection may update, replace or contradict.

    A review of clean threads is not shown untrusted text, because what it finds is clean.
    """
    reviewed = rows.of_reflection(tx, node_id)
    label = join(thread.label for thread in reviewed)
    owners = sorted({_owner(tx, thread) for thread in reviewed})
    valid: list[Insight] = []
    removed: list[Insight] = []
    for owner in owners:
        team_id = reviewed[0].team_id
        valid += rows.owned(tx, team_id, [owner], limit=MOST_KNOWN)
        if label:
            valid += rows.owned(tx, team_id, [owner], status="unverified", limit=MOST_KNOWN)
        removed += rows.owned(tx, team_id, [owner], status="removed", limit=MOST_KNOWN)
    return Known(
        [insight for insight in valid if label or not insight.label],
        [insight for insight in removed if label or not insight.label],
    )


def _owner(tx: Tx, thread: Thread) -> Owner:
    return of_learned(AGENTS.get(tx, thread.agent_id))


def store_insights(tx: Tx, lease: Lease, learned: Sequence[LearnedInsight]) -> int:
    """Store insights and mark the reviewed threads in one transaction. Return how many are new.

    The agent has read all threads at once, so a single labelled thread labels all insights.
    """
    threads.check_lease(tx, lease)
    reviewed = rows.of_reflection(tx, lease.node_id)
    left = [t for t in reviewed if THREADS.get(tx, t.id, lock=True).harvested_at is None]
    if not left:
        return 0  # a crash came after the commit of the first attempt
    label = join(thread.label for thread in reviewed)
    counts = dict.fromkeys((thread.id for thread in left), 0)
    replaced = 0
    for insight in learned:
        in_range = 1 <= insight.work <= len(reviewed)
        source = reviewed[insight.work - 1] if in_range else reviewed[-1]
        if source.id not in counts:
            continue
        learner = AGENTS.get(tx, source.agent_id)
        owner = of_learned(learner)
        may_replace = replaced < MAX_REPLACED
        relation = checked(
            tx, insight.relation, lease.team_id, owner, label, may_replace=may_replace
        )
        replaced += relation.action in ("update", "supersede")
        items.learn(
            tx,
            learner,
            insight.type,
            mask_secrets(insight.content),
            author=lease.agent_id,
            confidence=insight.confidence,
            source_thread_id=source.id,
            label=label,
            owner=owner,
            relation=relation,
        )
        counts[source.id] += 1
    for thread in left:
        _mark(tx, thread, insights=counts[thread.id])
    if label:
        THREADS.update(tx, lease.thread_id, label=label)
    return sum(counts.values())


def checked(
    tx: Tx, stated: Relation, team_id: TeamId, owner: Owner, label: Label, *, may_replace: bool
) -> Relation:
    """Return the relation that counts: the stated one if the known insight exists and belongs to
    the same owner, else a plain addition.

    Nothing takes the place of what a person said, and nothing with untrusted text takes the place
    of what has none. Both stand side by side then, as a contradiction.
    """
    if stated.action == "add":
        return ADD
    known = INSIGHTS.find(tx, stated.id, lock=True)
    if known is None or (known.team_id, known.owner) != (team_id, owner):
        return ADD
    if known.status not in ("active", "unverified") or (known.label and not label):
        return ADD
    is_protected = is_person(known.author) or (bool(label) and not known.label)
    if stated.action != "contradict" and (is_protected or not may_replace):
        return Relation(action="contradict", id=known.id)
    return stated


def _mark(tx: Tx, thread: Thread, *, insights: int) -> None:
    THREADS.update(tx, thread.id, harvested_at=tx.now)
    tx.emit(
        thread.team_id,
        ThreadHarvested(thread_id=thread.id, agent_id=thread.agent_id, insights=insights),
    )


class _Reflection(KindVerbs):
    def agent_idle(self, tx: Tx, agent: Agent, last: WorkNode) -> None:
        go_on(tx, agent, last)


REFLECTION = _Reflection()
KINDS = {
    "reflection": WorkKind(
        name="reflection",
        lane="reflection",
        runner="agiraph.features.knowledge.kind:REFLECTION",
        verbs="agiraph.features.knowledge.verbs.reflection:REFLECTION",
    )
}
"""The search for insights in threads that have ended."""
