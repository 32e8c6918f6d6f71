"""Happenings: what each type of event says, so that clients can read it without guessing."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from agiraph.domain.agents import AgentKind, Mode
from agiraph.domain.events import EventType
from agiraph.domain.messages import Decision, MessageKind, Rating
from agiraph.domain.stages import StageStatus
from agiraph.domain.triggers import ActionType, TriggerStatus, TriggerType
from agiraph.domain.work import Lane, StopReason

__all__ = ["DATA", "Data"]


class Data(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Nothing(Data):
    """The type says it all."""


class Founding(Data):
    name: str
    goal: str
    mode: Mode


class Resumption(Data):
    goal: str | None = None
    """The new goal, if it goes on because it was given one."""


class Hiring(Data):
    agent_id: str
    name: str
    role: str
    model: str
    kind: AgentKind
    created_for: str | None
    """The node it was hired for, if it leaves with its end."""


class Member(Data):
    agent_id: str
    name: str


class Creation(Data):
    node_id: str
    title: str
    parent_id: str | None
    creator_id: str
    lane: Lane
    needs: list[str]
    """Nodes that must succeed before it starts."""


class Assignment(Data):
    node_id: str
    agent_id: str
    agent: str | None = None
    """Its name, when it is given the node for the first time."""
    added: dict[str, float] | None = None
    """With a retry: how much each limit that was used up was raised by."""


class Start(Data):
    node_id: str
    agent_id: str
    attempt: int


class Waiting(Data):
    node_id: str
    on: list[str]
    """What it waits for: `node:…`, `stage:…`, `answer:…`, `approval:…` or `time:…`."""
    reason: str | None


class End(Data):
    node_id: str
    reason: StopReason | None
    result: str | None
    doubts: str | None = None
    """What could not be shown of what was asked for."""


class Checkpoint(Data):
    node_id: str
    summary: str


class Stall(Data):
    node_id: str
    agent_id: str | None


class Output(Data):
    node_id: str
    text: str
    bytes: int
    """How much the program has said since the last of these."""


class StageStart(Data):
    stage_id: str
    name: str
    nodes: list[str]


class StageEnd(Data):
    stage_id: str
    name: str
    status: StageStatus


class Reconvening(Data):
    stage_id: str
    name: str
    assessment: str


class Opening(Data):
    thread_id: str
    node_id: str
    agent_id: str


class InThread(Data):
    thread_id: str
    node_id: str


class Call(Data):
    id: str
    name: str
    arguments: dict[str, Any]
    """Shortened."""


class Reply(Data):
    node_id: str
    thread_id: str
    agent_id: str
    seq: int
    text: str
    """Shortened; the thread has all of it."""
    calls: list[Call]
    tokens: int
    usd: float | None


class Result(Data):
    node_id: str
    call_id: str
    tool: str
    failed: bool
    text: str
    """Shortened; the thread has all of it."""


class Said(Data):
    message_id: str
    kind: MessageKind
    sender: str
    recipient: str
    text: str
    node_id: str | None


class Seen(Data):
    message_ids: list[str]


class Answer(Data):
    message_id: str
    """The question."""
    node_id: str | None
    text: str
    decision: Decision | None


class Failure(Data):
    node_id: str
    reason: str


class TriggerMade(Data):
    trigger_id: str
    agent_id: str
    type: TriggerType
    action: ActionType
    made_by: str
    due_at: str | None


class TriggerChanged(Data):
    """It fires at other times, does something else, rests or goes on."""

    trigger_id: str
    agent_id: str
    status: TriggerStatus
    due_at: str | None


class TriggerFired(Data):
    trigger_id: str
    agent_id: str
    slot: str
    """Which of its times this was."""
    action: ActionType
    node_id: str | None


class TriggerSkipped(Data):
    trigger_id: str
    agent_id: str
    slot: str
    reason: str
    count: int


class TriggerEnded(Data):
    trigger_id: str
    agent_id: str
    status: TriggerStatus
    reason: str


class Remembered(Data):
    """A memory, with its ids, or a note, with its path."""

    agent_id: str
    id: str | None = None
    stands: str | None = None
    change_id: str | None = None
    held: bool | None = None
    path: str | None = None


class Learned(Data):
    id: str
    agent_id: str
    stands: str
    """What says the same and counts: itself, or what was known before."""
    change_id: str
    held: bool


class Held(Data):
    id: str
    agent_id: str
    path: str


class KnowledgeChanged(Data):
    verb: str
    change_id: str
    ids: list[str]


class Harvest(Data):
    thread_id: str
    agent_id: str
    insights: int
    passed_over: bool
    """It was closed without anybody looking back on it."""


class Briefing(Data):
    node_id: str
    agent_id: str
    sent: bool
    message_id: str | None
    reason: str
    score: float | None = None
    threshold: float | None = None


class Rated(Data):
    message_id: str
    rating: Rating
    threshold: float


class Delivered(Data):
    delivery_id: str
    message_id: str
    channel: str
    tries: int


class Undelivered(Delivered):
    error: str


DATA: dict[EventType, type[Data]] = {
    "team.created": Founding,
    "team.completed": Nothing,
    "team.paused": Nothing,
    "team.resumed": Resumption,
    "team.stopped": Nothing,
    "team.archived": Nothing,
    "agent.hired": Hiring,
    "agent.left": Member,
    "agent.promoted": Member,
    "node.created": Creation,
    "node.assigned": Assignment,
    "node.started": Start,
    "node.waiting": Waiting,
    "node.completed": End,
    "node.failed": End,
    "node.cancelled": End,
    "node.checkpoint": Checkpoint,
    "node.stalled": Stall,
    "node.output": Output,
    "stage.started": StageStart,
    "stage.ended": StageEnd,
    "stage.reconvened": Reconvening,
    "thread.opened": Opening,
    "thread.compacted": InThread,
    "turn.added": Reply,
    "tool.result": Result,
    "message.sent": Said,
    "message.seen": Seen,
    "question.asked": Said,
    "question.answered": Answer,
    "model.failed": Failure,
    "call.lost": InThread,
    "trigger.created": TriggerMade,
    "trigger.changed": TriggerChanged,
    "trigger.fired": TriggerFired,
    "trigger.skipped": TriggerSkipped,
    "trigger.ended": TriggerEnded,
    "memory.written": Remembered,
    "insight.learned": Learned,
    "knowledge.held": Held,
    "knowledge.changed": KnowledgeChanged,
    "thread.harvested": Harvest,
    "briefing.decided": Briefing,
    "briefing.rated": Rated,
    "delivery.sent": Delivered,
    "delivery.failed": Undelivered,
}
