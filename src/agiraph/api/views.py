"""Views: what clients see of teams, agents, nodes and messages."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from agiraph.domain.chat import Thread, Turn
from agiraph.domain.ids import HUMAN
from agiraph.domain.messages import Decision, Message, MessageKind, Rating
from agiraph.domain.people import AgentKind, Mode, Team, TeamStatus
from agiraph.domain.stages import Stage, StageContract, StageStatus
from agiraph.domain.work import Budget, IfUnmet, Lane, NodeStatus, Source, StopReason, WorkNode
from agiraph.services import board, notices
from agiraph.services.people import Doing, Member
from agiraph.store import dependencies, events, messages, nodes, spend, stages, teams
from agiraph.store.tx import Tx


class View(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Cost(View):
    calls: int
    tokens: int
    usd: float
    """What is known of it; calls whose price nobody knows count no money."""


class TeamView(View):
    id: str
    name: str
    goal: str
    mode: Mode
    status: TeamStatus
    coordinator_id: str | None
    created_at: datetime
    learns: bool
    members: int
    working: int
    """Members that are at work now."""
    open_questions: int
    unread: int
    usd: float
    head: int
    """The number of its newest event."""


def team_view(tx: Tx, team: Team) -> TeamView:
    members = teams.members(tx, team.id)
    return TeamView(
        id=team.id,
        name=team.name,
        goal=team.goal,
        mode=team.mode,
        status=team.status,
        coordinator_id=members[0].id if members else None,
        created_at=team.created_at,
        learns=team.learns,
        members=len(members),
        working=nodes.count_running(tx, team.id),
        open_questions=len(messages.open_questions(tx, team.id)),
        unread=messages.unread_from(tx, team.id),
        usd=sum(row.usd for row in spend.of_team(tx, team.id)),
        # With what is being changed just now, which is numbered when this commits.
        head=events.head(tx, team.id) + tx.emitted(team.id),
    )


class AgentView(View):
    id: str
    team_id: str
    name: str
    role: str
    kind: AgentKind
    model: str
    command: str | None
    status: Doing
    """What it is doing: a query, never stored."""
    node_id: str | None
    """What it works on, or did last."""
    node_title: str
    thread_id: str | None
    waiting_reason: str | None
    persistent: bool
    created_for: str | None
    parent_thread_id: str | None
    created_at: datetime
    retired_at: datetime | None
    unread: int
    """Messages of its to the person that they have not read."""


def agent_view(tx: Tx, member: Member) -> AgentView:
    agent, node = member.agent, member.node
    return AgentView(
        id=agent.id,
        team_id=agent.team_id,
        name=agent.name,
        role=agent.role,
        kind=agent.kind,
        model=agent.model,
        command=agent.command,
        status=member.doing,
        node_id=None if node is None else node.id,
        node_title="" if node is None else notices.title_of(node),
        thread_id=None if member.thread is None else member.thread.id,
        waiting_reason=None if node is None else node.waiting_reason,
        persistent=agent.persistent,
        created_for=agent.created_for,
        parent_thread_id=agent.parent_thread_id,
        created_at=agent.created_at,
        retired_at=agent.retired_at,
        unread=messages.unread_from(tx, agent.team_id, sender=agent.id),
    )


class NodeView(View):
    id: str
    team_id: str
    title: str
    task: str
    status: NodeStatus
    source: Source
    lane: Lane
    creator_id: str
    creator: str
    assignee_id: str | None
    assignee: str | None
    parent_id: str | None
    depends_on: list[str]
    stage_id: str | None
    trigger_id: str | None
    thread_id: str | None
    depth: int
    attempt: int
    waiting_reason: str | None
    stop_reason: StopReason | None
    checkpoint: str | None
    result: str | None
    doubts: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stalled_at: datetime | None
    cost: Cost
    """Of this node and everything below it."""


def node_view(tx: Tx, node: WorkNode) -> NodeView:
    used = spend.total(tx, node.id)
    return NodeView(
        id=node.id,
        team_id=node.team_id,
        title=notices.title_of(node),
        task=node.task,
        status=node.status,
        source=node.source,
        lane=node.lane,
        creator_id=node.creator_id,
        creator=board.name_of(tx, node.creator_id),
        assignee_id=node.assignee_id,
        assignee=None if node.assignee_id is None else board.name_of(tx, node.assignee_id),
        parent_id=node.parent_id,
        depends_on=[needed.id for needed in dependencies.needs(tx, node.id)],
        stage_id=node.stage_id,
        trigger_id=node.trigger_id,
        thread_id=node.thread_id,
        depth=node.depth,
        attempt=node.attempt,
        waiting_reason=node.waiting_reason,
        stop_reason=node.stop_reason,
        checkpoint=node.checkpoint,
        result=node.result,
        doubts=node.doubts,
        created_at=node.created_at,
        started_at=node.started_at,
        ended_at=node.ended_at,
        stalled_at=node.stalled_at,
        cost=Cost(calls=used.calls, tokens=used.tokens, usd=used.usd),
    )


class FileView(View):
    path: str
    """From the team's folder on."""
    kind: str
    size: int
    modified: datetime


class NodeDetail(NodeView):
    refs: dict[str, str]
    acceptance: list[str]
    if_unmet: IfUnmet
    budget: Budget
    manifest: dict[str, str]
    """What it published, with the hash of each file."""
    files: list[FileView]
    children: list[str]
    started: int
    """How often somebody sat down to it."""


class StageView(View):
    id: str
    team_id: str
    node_id: str
    name: str
    status: StageStatus
    contract: StageContract
    nodes: list[str]
    assessment: str | None
    created_at: datetime
    ended_at: datetime | None


def stage_view(tx: Tx, stage: Stage) -> StageView:
    return StageView(
        id=stage.id,
        team_id=stage.team_id,
        node_id=stage.node_id,
        name=stage.name,
        status=stage.status,
        contract=stage.contract,
        nodes=[node.id for node in stages.nodes(tx, stage.id)],
        assessment=stage.assessment,
        created_at=stage.created_at,
        ended_at=stage.ended_at,
    )


class AttachmentView(View):
    name: str
    media_type: str
    data: str
    """Base64."""


class MessageView(View):
    id: str
    team_id: str
    seq: int
    """Its place in the recipient's mailbox."""
    sender: str
    sender_name: str
    recipient: str
    kind: MessageKind
    title: str
    text: str
    options: list[str]
    node_id: str | None
    in_reply_to: str | None
    client_id: str | None
    attachments: list[AttachmentView]
    created_at: datetime
    seen_at: datetime | None
    """When its recipient heard it: an agent at a step of its work, the person by reading."""
    answered_at: datetime | None
    decision: Decision | None
    rating: Rating | None
    """What the person thought of a briefing."""


def message_view(tx: Tx, message: Message) -> MessageView:
    return MessageView(
        id=message.id,
        team_id=message.team_id,
        seq=message.seq,
        sender=message.sender,
        sender_name=HUMAN if message.sender == HUMAN else board.name_of(tx, message.sender),
        recipient=message.recipient,
        kind=message.kind,
        title=message.title,
        text=message.text,
        options=list(message.options),
        node_id=message.node_id,
        in_reply_to=message.in_reply_to,
        client_id=message.client_id,
        attachments=[
            AttachmentView(name=a.name, media_type=a.media_type, data=a.data)
            for a in message.attachments
        ],
        created_at=message.created_at,
        seen_at=message.seen_at,
        answered_at=message.answered_at,
        decision=message.decision,
        rating=message.rating,
    )


class ThreadView(View):
    id: str
    team_id: str
    agent_id: str
    node_id: str | None
    kind: Lane
    parent_id: str | None
    created_at: datetime
    closed_at: datetime | None


def thread_view(thread: Thread) -> ThreadView:
    return ThreadView(
        id=thread.id,
        team_id=thread.team_id,
        agent_id=thread.agent_id,
        node_id=thread.node_id,
        kind=thread.kind,
        parent_id=thread.parent_id,
        created_at=thread.created_at,
        closed_at=thread.closed_at,
    )


class CallView(View):
    id: str
    name: str
    arguments: dict[str, Any]


class TurnView(View):
    seq: int
    role: str
    text: str
    at: datetime
    ref: str | None
    calls: list[CallView]
    failed: bool
    model: str | None
    input_tokens: int
    output_tokens: int
    usd: float | None


def turn_view(turn: Turn) -> TurnView:
    return TurnView(
        seq=turn.seq,
        role=turn.role,
        text=turn.text,
        at=turn.at,
        ref=turn.ref,
        calls=[CallView(id=c.id, name=c.name, arguments=c.arguments) for c in turn.calls],
        failed=bool(turn.extra.get("failed")),
        model=turn.model,
        input_tokens=turn.usage.input_tokens,
        output_tokens=turn.usage.output_tokens,
        usd=turn.usage.usd,
    )
