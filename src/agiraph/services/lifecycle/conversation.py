"""Conversation: what a person says to an agent is answered at once, and becomes work if need be."""

from typing import Literal

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Attachment, Lease
from agiraph.domain.errors import Refused
from agiraph.domain.events.team import TeamResumed
from agiraph.domain.ids import HUMAN, SYSTEM, AgentId, NodeId
from agiraph.domain.messages import Message
from agiraph.domain.outcomes import Failed, Finished
from agiraph.domain.work import Budget, Queue, WorkNode
from agiraph.services.board import planning, waiting
from agiraph.services.board.notices import first_line
from agiraph.services.lifecycle import endings
from agiraph.services.mail import bus
from agiraph.services.triggers import definitions
from agiraph.store import messages, nodes, teams, threads
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

TURNS = 6
"""Steps a reply may take, looking things up included."""

STARTED = "\n(Other work of yours was started for this when you replied; do not do the same here.)"

Work = Literal["started", "not_needed"]
"""What was decided in a reply: it began the work itself, or there is none to do."""


def say(
    tx: Tx,
    agent_id: AgentId,
    text: str,
    *,
    client_id: str | None = None,
    nudge: bool = False,
    attachments: tuple[Attachment, ...] = (),
) -> Message:
    """A person speaks to an agent. A nudge wants no answer: it goes to the work itself."""
    agent = teams.lock(tx, agent_id)
    team = teams.TEAMS.get(tx, agent.team_id)
    if team.status == "archived":
        raise Refused(f"Team {team.name!r} is archived; nobody is there to hear this.")
    answered = not nudge and agent.kind == "llm"
    is_new = client_id is None or messages.by_client(tx, team.id, client_id) is None
    return bus.send(
        tx,
        team_id=team.id,
        sender=HUMAN,
        recipient=agent.id,
        text=text,
        kind="nudge" if nudge else "message",
        client_id=client_id,
        sets_to_work=not answered,
        reply_id=_reply_to(tx, agent).id if answered and is_new else None,
        attachments=attachments,
    )


def _reply_to(tx: Tx, agent: Agent) -> WorkNode:
    """The reply that answers what is said now: one for all that comes before it is begun."""
    return nodes.unbegun(tx, Queue(agent.id, "reply")) or planning.create(
        tx,
        team_id=agent.team_id,
        task="Answer the human.",
        title="Reply",
        source="user",
        creator_id=SYSTEM,
        assignee_id=agent.id,
        budget=Budget(turns=TURNS),
        lane="reply",
    )


def conclude(
    tx: Tx, lease: Lease, outcome: Finished | Failed, *, text: str, work: Work | None = None
) -> None:
    """End a reply with these words; unless that was decided in it, what was asked becomes work.

    Somebody who is at work anyway hears it at the next yield point instead, or by the end of
    a wait.
    """
    threads.check_lease(tx, lease)
    agent = teams.lock(tx, lease.agent_id)
    asked = messages.to_answer(tx, lease.node_id)
    bus.send(
        tx,
        team_id=lease.team_id,
        sender=agent.id,
        recipient=HUMAN,
        text=text,
        node_id=lease.node_id,
        in_reply_to=asked[-1].id if asked else None,
        refusable=False,
    )
    unheard = [message for message in asked if message.seen_at is None]
    if work == "not_needed":
        # Work that waits for the person hears even this before it goes on: what seems to need no
        # work may be the answer to its question.
        if not waiting.asks_person(tx, agent.id):
            messages.mark_seen(tx, [message.id for message in unheard])
    elif work == "started":
        if not waiting.interrupt(tx, agent.id, asked, asking_only=True, remark=STARTED):
            messages.mark_seen(tx, [message.id for message in unheard])
    elif unheard and not nodes.has_open(tx, agent.id):
        start_work(tx, agent, lease.node_id, "\n\n".join(message.text for message in unheard))
    else:
        waiting.interrupt(tx, agent.id, asked, asking_only=not unheard)
    endings.conclude(tx, lease, outcome)


def start_work(
    tx: Tx, agent: Agent, reply_id: NodeId, task: str, *, tainted_by: str | None = None
) -> WorkNode:
    """What a person asked for becomes this agent's work."""
    asked = messages.to_answer(tx, reply_id)
    messages.mark_seen(tx, [message.id for message in asked if message.seen_at is None])
    _open_again(tx, agent)
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task=task,
        title=first_line(task),
        source="user",
        creator_id=HUMAN,
        assignee_id=agent.id,
        tainted_by=tainted_by,
    )
    for message in asked:
        MESSAGES.update(tx, message.id, node_id=node.id)
    return node


def _open_again(tx: Tx, agent: Agent) -> None:
    """A team that was done, or stopped, has something to do again."""
    team = teams.TEAMS.get(tx, agent.team_id, lock=True)
    if team.status in ("completed", "stopped"):
        teams.TEAMS.update(tx, team.id, status="active")
        tx.emit(team.id, TeamResumed())
        definitions.revive(tx, team.id)
