"""Views: what clients see. They know nothing of how it is kept, so that clients load little."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agiraph.domain.access import Scope, TokenKind
from agiraph.domain.agents import AgentKind, Doing, Mode, TeamStatus
from agiraph.domain.deliveries import Delivery
from agiraph.domain.messages import Decision, MessageKind, Rating, State
from agiraph.domain.passages import PassageKind
from agiraph.domain.stages import StageContract, StageStatus
from agiraph.domain.triggers import ActionType, Misfire, Overlap, TriggerStatus, TriggerType
from agiraph.domain.work import Budget, IfUnmet, Lane, NodeStatus, Source, StopReason

NOUNS = ConfigDict(use_attribute_docstrings=True)
"""Of views that hold nouns of the domain, whose own words describe their fields."""


class View(BaseModel):
    # Built when it is first used: a command uses one or two of them. Nor are fields described by
    # docstrings, for which this file would be read again for every class.
    model_config = ConfigDict(defer_build=True)


class Cost(View):
    calls: int
    tokens: int
    usd: float = Field(
        description="What is known of it; calls whose price nobody knows count no money."
    )


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
    working: int = Field(description="Members that are at work now.")
    open_questions: int
    unread: int
    usd: float
    head: int = Field(description="The number of its newest event.")


class AgentView(View):
    id: str
    team_id: str
    name: str
    role: str
    kind: AgentKind
    model: str
    command: str | None
    status: Doing = Field(description="What it is doing: a query, never stored.")
    node_id: str | None = Field(description="What it works on, or did last.")
    node_title: str
    thread_id: str | None
    waiting_reason: str | None
    persistent: bool
    created_for: str | None
    parent_thread_id: str | None
    created_at: datetime
    retired_at: datetime | None
    unread: int = Field(description="Messages of its to the person that they have not read.")


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
    cost: Cost = Field(description="Of this node and everything below it.")


class FileView(View):
    path: str = Field(description="From the team's folder on.")
    kind: str
    size: int
    modified: datetime


class NodeDetail(NodeView):
    model_config = NOUNS

    refs: dict[str, str]
    acceptance: list[str]
    if_unmet: IfUnmet
    budget: Budget
    manifest: dict[str, str] = Field(description="What it published, with the hash of each file.")
    files: list[FileView]
    children: list[str]
    started: int = Field(description="How often somebody sat down to it.")


class StageView(View):
    model_config = NOUNS

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


class AttachmentView(View):
    name: str
    media_type: str
    data: str = Field(description="Base64.")


class CallView(View):
    id: str
    name: str
    arguments: dict[str, Any]


class MessageView(View):
    id: str
    team_id: str
    seq: int = Field(description="Its place in the recipient's mailbox.")
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
    seen_at: datetime | None = Field(
        description="When its recipient heard it: an agent at a step of its work, the person by "
        "reading."
    )
    answered_at: datetime | None
    decision: Decision | None
    rating: Rating | None = Field(description="What the person thought of a briefing.")
    call: CallView | None = Field(
        description="For an approval: the tool call to decide on, complete. Show it as plain text."
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


class InboxItem(View):
    model_config = NOUNS

    message: MessageView
    state: State
    needs_answer: bool = Field(description="Whether somebody waits for the person's word.")
    deliveries: list[Delivery] = Field(
        description="How it fared on its way to the person's channels."
    )


class InboxPage(View):
    items: list[InboxItem]
    cursor: str | None = Field(
        description="For `after`, to get the next page; null if this was the last."
    )
    unread: int


class TriggerView(View):
    id: str
    team_id: str
    agent_id: str
    type: TriggerType
    action: ActionType
    config: dict[str, Any]
    payload: dict[str, Any]
    zone: str
    misfire: Misfire
    overlap: Overlap
    status: TriggerStatus
    due_at: datetime | None = Field(
        description="When it fires next; null while its agent works, or if it is not time that "
        "sets it off."
    )
    is_overdue: bool
    fired_at: datetime | None
    fired: int
    skipped: int
    gated: int = Field(
        description="How often there was nothing to wake anybody for; that cost nothing."
    )
    made_by: str
    promised_to: str | None
    created_at: datetime
    ended_at: datetime | None
    ended: str | None
    cost: Cost


class MadeTrigger(TriggerView):
    secret: str | None = Field(
        default=None, description="What a webhook's caller must send; shown this once."
    )


class HeldView(View):
    id: str
    agent_id: str
    kind: str
    text: str
    source: str = Field(description="Where its words come from, as far as that is known.")
    created_at: datetime


class HitView(View):
    kind: PassageKind
    ref: str = Field(
        description="Where it is from: a path, an address, the id of an insight or a node."
    )
    title: str
    text: str
    tainted: bool = Field(description="Nobody on the team vouches for these words.")
    created_at: datetime


class Listing(View):
    """What is in a folder."""

    path: str
    entries: list[FileView]


class TokenView(View):
    id: str
    kind: TokenKind
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None


class IssuedToken(TokenView):
    secret: str = Field(description="Shown this once and kept nowhere.")


class LinkView(View):
    path: str = Field(description="To be opened in a browser on this server; good once.")
    expires_at: datetime | None


class Health(View):
    status: str


class Stopped(View):
    """How much an emergency stop ended."""

    teams: int
    nodes: int  # pieces of work that were open and are cancelled; what runs ends within seconds
