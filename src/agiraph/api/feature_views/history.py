"""History views: the timeline, the board at a moment, and the event log, as clients get them."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import CostView, View
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.records.phases import Phase, TickKind
from agiraph.core.domain.stages import StageStatus
from agiraph.core.domain.work import Lane, NodeStatus, StopReason

TREE_COST = (
    "The cost of this node and all nodes below it until then, without web searches and side calls."
)
TEAM_COST = "What the team had cost until then, without web searches and side calls."
OTHER_COST = (
    "The cost of the team's web searches and side calls until now. No event records their time, so "
    "the cost at a moment leaves them out. With all model calls they are the team's total cost."
)
FIRST_SEQ = (
    "The number of the first event included: 1, unless the team has more than 200,000 events."
)


class SpanView(View):
    """Time of one node in one phase."""

    node_id: str
    agent_id: str
    number: int = Field(description="Its place among the spans of its node, from 1.")
    phase: Phase
    start: datetime
    end: datetime | None = Field(description="Null while it lasts.")
    seq: int = Field(description="The event that ended it; 0 while it lasts.")
    attempt: int
    label: str = Field(description="The tools that ran, or why the node waited.")
    failed: bool
    tokens: int
    usd: float | None


class TickView(View):
    """A moment: a tool answered, a message was sent, a model failed."""

    seq: int
    at: datetime
    kind: TickKind
    agent_id: str
    node_id: str | None
    label: str
    failed: bool


class StopView(View):
    """Time in which all work of all teams was stopped."""

    start: datetime
    end: datetime | None = Field(description="Null while it lasts.")


class TimelineNodeView(View):
    id: str
    title: str
    lane: Lane
    status: NodeStatus
    parent_id: str | None


class TimelineView(View):
    """How the time of a team's nodes was spent, in pages by event number."""

    first_seq: int = Field(description=FIRST_SEQ)
    last_seq: int = Field(description="The newest event that was folded.")
    next_seq: int | None = Field(
        description="Continue with this number as `after`; null if this is the last page."
    )
    spans: list[SpanView] = Field(description="The spans that ended, in the order of their ends.")
    open: list[SpanView] = Field(description="The spans that last; only on the last page.")
    ticks: list[TickView]
    nodes: list[TimelineNodeView] = Field(description="The nodes of these spans.")
    stops: list[StopView] = Field(description="All of them, on every page.")
    other_usd: float = Field(description=OTHER_COST)


class NodeMomentView(View):
    """A node as it was at a moment."""

    id: str
    title: str
    status: NodeStatus
    lane: Lane
    parent_id: str | None
    depends_on: list[str]
    stage_id: str | None
    assignee_id: str | None
    attempt: int
    waiting_reason: str | None
    stop_reason: StopReason | None
    result: str | None
    doubts: list[Doubt]
    checkpoint: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    running_since: datetime | None
    worked_seconds: float = Field(
        description="Seconds that it was worked on, without waits, up to `running_since`."
    )
    cost: CostView = Field(description=TREE_COST)


class StageMomentView(View):
    id: str
    name: str
    status: StageStatus


class BoardMomentView(View):
    """A team's board as it was after an event."""

    seq: int = Field(description="The event that was asked for.")
    at: datetime | None = Field(description="The time of that event; null before the first.")
    first_seq: int = Field(description=FIRST_SEQ)
    head: int = Field(description="The number of the team's newest event.")
    nodes: list[NodeMomentView]
    stages: list[StageMomentView]
    members: list[str] = Field(description="The ids of the agents that were in the team.")
    usd: float = Field(description=TEAM_COST)
    other_usd: float = Field(description=OTHER_COST)
