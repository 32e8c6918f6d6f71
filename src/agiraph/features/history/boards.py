"""Boards: the board of a team at any moment, folded from its events.

The fold of all events equals the board that the rows show now; `tests/scenarios` check it. Fields
that never change (the task, the creator's name) are in the rows and not folded.
"""

from bisect import bisect_right
from collections.abc import Iterable
from copy import copy
from dataclasses import field
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar, cast

from agiraph.core.domain.events import PREVIEW, Event
from agiraph.core.domain.events.work import NODE_ENDS
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.stages import StageStatus
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane, NodeStatus, StopReason

E = TypeVar("E", bound=Enum)

_JOINS = ("agent.hired", "agent.returned")
_SUBJECTS = ("node.", "stage.", *_JOINS, "agent.left")
_COSTS = ("turn.added", "call.lost")
CHECKPOINT = 2000
"""After so many events, and no fewer than the team has nodes, the fold's state is kept, so that a
late moment is reached quickly."""


@dataclass(slots=True)
class NodeMoment:
    """A node as it was at a moment."""

    id: str
    created_at: datetime
    title: str = ""
    parent_id: str | None = None
    lane: Lane = "work"
    needs: tuple[str, ...] = ()
    status: NodeStatus = NodeStatus.PENDING
    assignee_id: str | None = None
    stage_id: str | None = None
    attempt: int = 0
    waiting_reason: str | None = None
    stop_reason: StopReason | None = None
    result: str | None = None
    doubts: tuple[Doubt, ...] = ()
    checkpoint: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    running_since: datetime | None = None
    worked_s: float = 0.0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def stop_running(self, at: datetime) -> None:
        if self.running_since is not None:
            self.worked_s += (at - self.running_since).total_seconds()
        self.running_since = None


@dataclass(slots=True)
class StageMoment:
    """A stage as it was at a moment."""

    id: str
    name: str
    status: StageStatus = "running"


@dataclass(slots=True)
class BoardMoment:
    """The board after one event."""

    nodes: dict[str, NodeMoment] = field(default_factory=dict[str, NodeMoment])
    stages: dict[str, StageMoment] = field(default_factory=dict[str, StageMoment])
    members: set[str] = field(default_factory=set[str])

    def copy(self) -> "BoardMoment":
        return BoardMoment(
            nodes={key: copy(node) for key, node in self.nodes.items()},
            stages={key: copy(stage) for key, stage in self.stages.items()},
            members=set(self.members),
        )

    def add(self, event: Event) -> None:
        """Fold the next event of the team."""
        if event.type.startswith("node."):
            self._node(event)
        elif event.type in _COSTS:
            self._cost(event.data)
        elif event.type.startswith("stage."):
            self._stage(event)
        elif event.type in _JOINS:
            self.members.add(str(event.data.get("agent_id")))
        elif event.type == "agent.left":
            self.members.discard(str(event.data.get("agent_id")))

    def _node(self, event: Event) -> None:
        data, id = event.data, str(event.data.get("node_id"))
        if event.type == "node.created":
            self.nodes[id] = _created(id, event)
            return
        node = self.nodes.get(id)
        if node is None:
            return  # created before the first event that is kept
        match event.type:
            case "node.assigned":
                _assign(node, event)
            case "node.started":
                node.status, node.waiting_reason = NodeStatus.RUNNING, None
                node.attempt = int(data.get("attempt", 1))
                node.started_at = node.started_at or event.at
                node.running_since = event.at
            case "node.waiting":
                node.waiting_reason = data.get("reason")
                # A pending node that needs a decision has a reason too, and stays pending.
                if node.status is NodeStatus.RUNNING:
                    node.status = NodeStatus.WAITING
                    node.stop_running(event.at)
            case "node.changed":
                self._change(node, data.get("changed") or {})
            case "node.checkpoint":
                node.checkpoint = data.get("summary")
            case _:
                if event.type in NODE_ENDS:
                    _end(node, event)

    def _change(self, node: NodeMoment, changed: dict[str, str | None]) -> None:
        node.status = _known(NodeStatus, changed.get("status")) or node.status
        if not node.status.is_final:
            node.ended_at = node.stop_reason = None
        for name in ("assignee_id", "stage_id", "waiting_reason"):
            if name in changed:
                setattr(node, name, changed[name])
        # A stage that was over runs again when more work joins it.
        if (stage := self.stages.get(changed.get("stage_id") or "")) is not None:
            stage.status = "running"

    def _stage(self, event: Event) -> None:
        data, id = event.data, str(event.data.get("stage_id"))
        if event.type == "stage.started":
            self.stages[id] = StageMoment(id, str(data.get("name")))
            nodes: list[str] = data.get("nodes") or []
            for each in nodes:
                if each in self.nodes:
                    self.nodes[each].stage_id = id
        elif id in self.stages and event.type == "stage.ended":
            self.stages[id].status = cast(StageStatus, data.get("status"))
        elif id in self.stages and data.get("decision") != "redo":
            self.stages[id].status = "reconvened"

    def _cost(self, data: dict[str, Any]) -> None:
        node = self.nodes.get(str(data.get("node_id")))
        if node is not None:
            node.calls += 1
            node.tokens += int(data.get("tokens") or 0)
            node.usd += float(data.get("usd") or 0.0)


def _known(kind: type[E], name: str | None) -> E | None:
    """Return the member of an enumeration; None if a later version of the runtime named it."""
    return next((each for each in kind if each.value == name), None)


def _created(id: str, event: Event) -> NodeMoment:
    data = event.data
    return NodeMoment(
        id=id,
        created_at=event.at,
        title=str(data.get("title") or ""),
        parent_id=data.get("parent_id"),
        lane=cast(Lane, data.get("lane", "work")),
        needs=tuple(data.get("needs") or ()),
        assignee_id=data.get("assignee_id"),
    )


def _assign(node: NodeMoment, event: Event) -> None:
    node.stop_running(event.at)
    node.status = NodeStatus.ASSIGNED
    node.assignee_id = str(event.data.get("agent_id"))
    node.waiting_reason = None
    if node.ended_at is not None:  # a retry
        node.attempt += 1
        node.ended_at = node.stop_reason = None


def _end(node: NodeMoment, event: Event) -> None:
    data = event.data
    node.stop_running(event.at)
    node.status = NODE_ENDS[event.type]
    node.stop_reason = _known(StopReason, data.get("reason"))
    node.result = data.get("result")
    node.doubts = tuple(Doubt(**doubt) for doubt in data.get("doubts") or ())
    node.ended_at, node.waiting_reason = event.at, None


class BoardFold:
    """Keeps the events that change a board, and gives the board at any of them."""

    __slots__ = ("_checkpoints", "_events", "_numbers", "_places", "_state")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._numbers: list[int] = []
        self._state = BoardMoment()
        self._checkpoints: list[BoardMoment] = []
        self._places: list[int] = []
        """How many events each checkpoint has folded."""

    def add(self, event: Event) -> None:
        """Fold the next event."""
        if not event.type.startswith(_SUBJECTS) and event.type not in _COSTS:
            return
        kept = _trimmed(event)
        self._state.add(kept)  # first: an event that cannot be folded is not kept
        self._events.append(kept)
        self._numbers.append(kept.seq)
        since = len(self._events) - (self._places[-1] if self._places else 0)
        if since >= max(CHECKPOINT, len(self._state.nodes)):
            self._checkpoints.append(self._state.copy())
            self._places.append(len(self._events))

    def moment(self, seq: int) -> BoardMoment:
        """Return the board after the event with this number."""
        until = bisect_right(self._numbers, seq)
        kept = bisect_right(self._places, until) - 1
        state = BoardMoment() if kept < 0 else self._checkpoints[kept].copy()
        start = 0 if kept < 0 else self._places[kept]
        for event in self._events[start:until]:
            state.add(event)
        return state


def fold(events: Iterable[Event]) -> BoardMoment:
    """Return the board after these events."""
    state = BoardMoment()
    for event in events:
        state.add(event)
    return state


def _trimmed(event: Event) -> Event:
    """Return an event without what the board does not show."""
    if event.type in _COSTS:
        data = {key: event.data.get(key) for key in ("node_id", "tokens", "usd")}
    elif isinstance(result := event.data.get("result"), str) and len(result) > PREVIEW:
        data = {**event.data, "result": result[:PREVIEW]}
    else:
        data = event.data
    return Event(team_id=event.team_id, seq=event.seq, type=event.type, at=event.at, data=data)
