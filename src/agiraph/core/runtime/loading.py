"""Loading: the rows that a run starts from, read in one transaction."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.chat import Attachment, Lease, Turn
from agiraph.core.domain.ids import SYSTEM
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.prompt_lines import Line
from agiraph.core.domain.waits import WaitingOn
from agiraph.core.domain.work import WorkNode
from agiraph.core.runtime.prompts.means import TeamState, team_state
from agiraph.core.runtime.prompts.prompt import find_tellers
from agiraph.core.services.board import labels, planning
from agiraph.core.services.board.budgets import LimitsOfRun, limits_of_run
from agiraph.core.services.lifecycle import conversation, work_state
from agiraph.core.store import messages, teams, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx


class Loaded(NamedTuple):
    """The rows that a run starts from, read in one transaction."""

    team: Team
    agent: Agent
    node: WorkNode
    giver: str | None
    """The name of the teammate who assigned the node; None if a person did."""
    turns: list[Turn]
    attachments: tuple[Attachment, ...]
    """Files that a person attached to their message."""
    parked_calls: dict[str, WaitingOn]
    limits: LimitsOfRun
    trusted: frozenset[str]
    """Sources that a person trusts: text from them does not label a thread."""
    told: tuple[Any, ...]
    """What features need to tell a new thread, in the order of their tellers; loaded only for a
    node without turns."""
    label: Label
    """The label of the task, its messages and the work that it builds on; loaded with these."""
    team_state: TeamState | None
    """The state of the team; loaded only for a coordinator's node without turns."""
    zone: str = "UTC"
    """The time zone of the node's person; loaded only for a node without turns."""
    said_before: Sequence[Line] = ()
    """The conversation that a person's message belongs to; loaded only for a node without turns."""
    said: Sequence[str] = ()
    """The person's messages that the task was made of, without those that it holds."""


def load(tx: Tx, lease: Lease) -> Loaded:
    """Return the rows of a leased node; raise `Fenced` if another runner has claimed it."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id)
    creator = node.creator_id
    by_teammate = not is_person(creator) and creator not in (SYSTEM, lease.agent_id)
    agent, turns = AGENTS.get(tx, lease.agent_id), threads.turns(tx, lease.thread_id)
    team = TEAMS.get(tx, lease.team_id)
    # The threads of a research are shown nothing of what the team knows.
    asked = messages.of_node(tx, node.id)
    is_fresh = node.is_work and not turns and node.kind.is_told
    return Loaded(
        team=team,
        agent=agent,
        node=node,
        giver=planning.name_of(tx, creator) if by_teammate and node.parent_id else None,
        turns=turns,
        attachments=tuple(a for said in asked for a in said.attachments),
        parked_calls={w.call_id: w.waiting_on for w in waits.of_node(tx, lease.node_id)},
        limits=limits_of_run(tx, node),
        trusted=labels.trusted(tx, lease.team_id),
        told=tuple(each.load(tx, team, agent, node) for each in find_tellers()) if is_fresh else (),
        label=labels.of_task(tx, node) if is_fresh else CLEAN,
        team_state=team_state(tx, team, agent, node)
        if is_fresh and agent.role == "coordinator"
        else None,
        zone=teams.zone_of(tx, planning.person_for(tx, node)) if is_fresh else "UTC",
        said_before=work_state.said_before(tx, agent, node, lease.thread_id) if is_fresh else (),
        said=conversation.unsaid(tx, node.task, asked, lease.thread_id) if is_fresh else (),
    )
