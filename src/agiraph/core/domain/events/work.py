"""Work events: nodes, stages, threads, model turns and tool calls."""

from dataclasses import asdict
from typing import Any, ClassVar, Literal

from agiraph.core.domain.events import EventType, TeamEvent, event
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.stages import StageDecision, StageStatus
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Lane, LineKind, NodeStatus, StopReason

NODE_ENDS: dict[str, NodeStatus] = {
    "node.completed": NodeStatus.COMPLETED,
    "node.partial": NodeStatus.PARTIAL,
    "node.failed": NodeStatus.FAILED,
    "node.cancelled": NodeStatus.CANCELLED,
}
"""The types of the events that end a node, with the status that each gives it."""


@value
class CallPreview:
    """A tool call of a reply."""

    id: str
    name: str
    arguments: dict[str, Any]
    """Long texts are shortened."""
    reading: str | None = None
    """How the call was read, in plain words, if the model wrote it in another form."""

    def data(self) -> dict[str, Any]:
        """Return the call as stored and sent: without a reading if there is none."""
        data: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        return data if self.reading is None else {**data, "reading": self.reading}


@event
class NodeCreated(TeamEvent):
    """A node was added to the board."""

    event_type: ClassVar[EventType] = "node.created"

    node_id: str
    title: str
    parent_id: str | None
    creator_id: str
    lane: Lane
    needs: list[str]
    """Nodes that must succeed before this node starts."""
    assignee_id: str | None = None
    """The agent that was chosen for it already."""


@event
class NodeAssigned(TeamEvent):
    """A node entered an agent's queue: for the first time, after a wait, or for a retry."""

    event_type: ClassVar[EventType] = "node.assigned"

    node_id: str
    agent_id: str
    agent: str | None = None
    """The agent's name, if the node is assigned for the first time."""
    added: dict[str, float] | None = None
    """For a retry: by how much each exhausted limit was raised."""
    by: str | None = None
    """The person who started it again after its end."""


@event
class NodeChanged(TeamEvent):
    """A node's place on the board changed although nobody started, parked or ended it."""

    event_type: ClassVar[EventType] = "node.changed"

    node_id: str
    changed: dict[str, str | None]
    """The new values of `status`, `assignee_id`, `stage_id` or `waiting_reason`."""
    by: str | None = None
    """The person who started it again after its end; it waits for others."""


@event
class NodeStarted(TeamEvent):
    """An agent started or continued to work on a node."""

    event_type: ClassVar[EventType] = "node.started"

    node_id: str
    agent_id: str
    attempt: int


@event
class NodeWaiting(TeamEvent):
    """A node waits; it costs nothing meanwhile."""

    event_type: ClassVar[EventType] = "node.waiting"

    node_id: str
    on: list[str]
    """What the node waits for: `node:…`, `stage:…`, `tasks:…`, `answer:…`, `approval:…`, `reply:…`
    or `time:…`."""
    reason: str | None


class _Doubted:
    __slots__ = ()

    def data(self: Any) -> dict[str, Any]:
        # Listeners get the same JSON values that a reader of the row gets, not our classes.
        data = TeamEvent.data(self)
        if "doubts" in data:
            data["doubts"] = [asdict(doubt) for doubt in data["doubts"]]
        return data


@event
class NodeCompleted(_Doubted, TeamEvent):
    """A node ended with a result."""

    event_type: ClassVar[EventType] = "node.completed"

    node_id: str
    reason: StopReason | None
    result: str | None
    doubts: list[Doubt] | None = None
    """What could not be confirmed of the result."""


@event
class NodePartial(_Doubted, TeamEvent):
    """A limit or a loop ended a node, which has something to show. It can be extended."""

    event_type: ClassVar[EventType] = "node.partial"

    node_id: str
    reason: StopReason | None
    result: str | None
    doubts: list[Doubt] | None = None
    """What could not be confirmed of the result."""


@event
class NodeFailed(_Doubted, TeamEvent):
    """A node ended without a usable result."""

    event_type: ClassVar[EventType] = "node.failed"

    node_id: str
    reason: StopReason | None
    result: str | None
    doubts: list[Doubt] | None = None
    """What could not be confirmed of the result."""


@event
class NodeCancelled(_Doubted, TeamEvent):
    """A node was cancelled."""

    event_type: ClassVar[EventType] = "node.cancelled"

    node_id: str
    reason: StopReason | None
    result: str | None
    doubts: list[Doubt] | None = None
    """What could not be confirmed of the result."""
    by: str | None = None
    """The person or agent that stopped it; none if the runtime did."""


@event
class NodeExtended(TeamEvent):
    """A node was given other limits, mostly higher ones."""

    event_type: ClassVar[EventType] = "node.extended"

    node_id: str
    by: str
    """The person or agent who extended it."""
    added: dict[str, float]
    """By how much each limit grew; negative if a person lowered it."""


@event
class NodeCheckpoint(TeamEvent):
    """An agent recorded its progress on a node."""

    event_type: ClassVar[EventType] = "node.checkpoint"

    node_id: str
    summary: str


@event
class NodeAcceptance(TeamEvent):
    """The acceptance lines of a node were set: what must be true when it is done."""

    event_type: ClassVar[EventType] = "node.acceptance"

    node_id: str
    lines: list[str]
    kinds: dict[str, LineKind] | None = None
    """What proves a line, by the line, for those that say it."""


@event
class NodeStalled(TeamEvent):
    """A running node has made no progress for longer than the watchdog allows."""

    event_type: ClassVar[EventType] = "node.stalled"

    node_id: str
    agent_id: str | None


@event
class NodeOutput(TeamEvent):
    """A program that works on a node wrote output."""

    event_type: ClassVar[EventType] = "node.output"

    node_id: str
    text: str
    bytes: int
    """Bytes the program has written since the previous event of this type."""


@event
class FolderChanged(TeamEvent):
    """Files of a folder that a person gave to the team were changed."""

    event_type: ClassVar[EventType] = "folder.changed"

    node_id: str | None
    """The node whose agent did it; null: a person undid changes."""
    folder: str
    paths: list[str]
    """The first of them, below the folder."""
    count: int


@event
class StageStarted(TeamEvent):
    """A stage was opened with its first nodes."""

    event_type: ClassVar[EventType] = "stage.started"

    stage_id: str
    name: str
    nodes: list[str]


@event
class StageEnded(TeamEvent):
    """A stage was met, broken or timed out."""

    event_type: ClassVar[EventType] = "stage.ended"

    stage_id: str
    name: str
    status: StageStatus


@event
class StageReconvened(TeamEvent):
    """A stage's owner judged its nodes; after the decision `redo` the stage runs again."""

    event_type: ClassVar[EventType] = "stage.reconvened"

    stage_id: str
    name: str
    assessment: str
    verdicts: dict[str, str]
    """The verdict on each node, by the node's id; a reason follows a colon."""
    decision: StageDecision


@event
class ThreadOpened(TeamEvent):
    """A node got its thread."""

    event_type: ClassVar[EventType] = "thread.opened"

    thread_id: str
    node_id: str
    agent_id: str


@event
class ThreadCompacted(TeamEvent):
    """A summary replaced the older turns in what the model is shown."""

    event_type: ClassVar[EventType] = "thread.compacted"

    node_id: str
    thread_id: str


@event
class TurnAdded(TeamEvent):
    """A model replied."""

    event_type: ClassVar[EventType] = "turn.added"

    node_id: str
    thread_id: str
    agent_id: str
    seq: int
    text: str
    """Shortened; the thread has the whole text."""
    calls: list[CallPreview]
    tokens: int
    usd: float | None
    refusal: str | None = None
    """The vendor's reason for withholding the rest of the reply."""

    def data(self) -> dict[str, Any]:
        # Listeners get the same JSON values that a reader of the row gets, not our classes.
        data = TeamEvent.data(self)
        data["calls"] = [call.data() for call in self.calls]
        return data


@event
class ToolResult(TeamEvent):
    """A tool call returned."""

    event_type: ClassVar[EventType] = "tool.result"

    node_id: str
    call_id: str
    tool: str
    failed: bool
    text: str
    """Shortened; the thread has the whole text."""


@event
class NetworkReached(TeamEvent):
    """A command reached a host for the first time."""

    event_type: ClassVar[EventType] = "network.reached"

    node_id: str
    call_id: str
    host: str
    use: str
    """What for: `packages`, `git` or `web`."""
    grant_id: str | None = None
    """The grant that allowed it."""


@event
class NetworkRefused(TeamEvent):
    """The network gate refused requests of a command."""

    event_type: ClassVar[EventType] = "network.refused"

    node_id: str
    call_id: str
    sentences: list[str]
    """What was refused, and how a person can allow it."""


@event
class ReportShared(TeamEvent):
    """A link to a report was made, opened for the first time, or revoked."""

    event_type: ClassVar[EventType] = "report.shared"

    node_id: str
    share_id: str
    step: Literal["made", "opened", "revoked"]
    expires_at: str | None = None
    """Until when the link works; only of one that was made."""


@event
class ModelFailed(TeamEvent):
    """A model call failed."""

    event_type: ClassVar[EventType] = "model.failed"

    node_id: str
    reason: str


LossCause = Literal["interrupted", "failed", "ended"]
"""Why a model call has no reply: a restart or a pause interrupted it, it failed, or its node was
ended meanwhile."""


@event
class CallLost(TeamEvent):
    """A model call got no reply, and may have cost money; its estimated cost is charged."""

    event_type: ClassVar[EventType] = "call.lost"

    node_id: str
    thread_id: str
    cause: LossCause | None = None
    """None in events from before this field existed."""
    tokens: int | None = None
    usd: float | None = None
    """The estimate that is charged."""
