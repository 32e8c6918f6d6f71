"""Spans: how the time of each node was spent, folded from a team's events.

A node's time is cut into spans: it is queued, its model answers, its tools run, or it waits for
something. An event ends the span before it and begins the next, so the spans of a node have no
gaps between its first assignment and its end. Events alone decide: a restart changes nothing.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from agiraph.core.domain.events import Event
from agiraph.core.domain.events.work import NODE_ENDS
from agiraph.core.domain.records.phases import WORK_PHASES, Phase, TickKind
from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.value import dataclass, value
from agiraph.core.domain.work import WaitingOn

_PROVIDER_WORDS = "the model cannot be reached"
LABEL_CHARACTERS = 160


@value
class Span:
    """Time of one node in one phase. `seq` is the event that ended it, or 0 while it is open."""

    node_id: str
    agent_id: str
    number: int
    """The span's place among the spans of its node, from 1. With the node's id it names the
    span."""
    phase: Phase
    start: datetime
    end: datetime | None
    seq: int
    attempt: int
    label: str
    failed: bool
    tokens: int
    usd: float | None


@value
class Tick:
    """Something that happened at one moment: a tool answered, a message was sent."""

    seq: int
    at: datetime
    kind: TickKind
    agent_id: str
    node_id: str | None
    label: str
    failed: bool


@value
class Stop:
    """Time in which all work of all teams was stopped; without an end while it is."""

    start: datetime
    end: datetime | None


@dataclass(slots=True)
class _Open:
    """The open span of a node, and what is known of its run."""

    agent_id: str
    phase: Phase
    start: datetime
    label: str = ""
    attempt: int = 0
    number: int = 1
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """The calls of the last reply that have no answer, with the names of their tools."""
    has_failed: bool = False
    """Whether the last model call failed."""
    lost_tokens: int = 0
    lost_usd: float | None = None


def wait_phase(on: Sequence[str], reason: str | None, *, after_failure: bool = False) -> Phase:
    """Return what a node waits for. A wait that a person can end is a wait for the person, even if
    a timer can end it too."""
    found = [WaitingOn.parse(each) for each in on if _is_wait(each)]
    kinds = {each.kind for each in found}
    if kinds & {"answer", "approval"}:
        return "person"
    if kinds & {"node", "stage", "tasks"}:
        return "child"
    if "reply" in kinds:
        return "teammate"
    if "day" in kinds:
        return "budget"
    if after_failure or (reason or "").startswith(_PROVIDER_WORDS):
        return "provider"
    return "timer" if found else "other"


def _is_wait(text: str) -> bool:
    try:
        WaitingOn.parse(text)
    except ValueError:
        return False
    return True


class SpanFold:
    """Folds events, oldest first, into spans and ticks."""

    __slots__ = ("_open", "_programs", "closed", "stops", "ticks")

    def __init__(self) -> None:
        self.closed: list[Span] = []
        """In the order of the events that ended them; each event ends at most one."""
        self.ticks: list[Tick] = []
        self.stops: list[Stop] = []
        self._open: dict[str, _Open] = {}
        self._programs: set[str] = set()

    def open_spans(self) -> list[Span]:
        """Return the spans that no event has ended yet, oldest first."""
        spans = [self._span(node, each, None, 0) for node, each in self._open.items()]
        return sorted(spans, key=lambda span: (span.start, span.node_id))

    def add(self, event: Event) -> None:
        """Fold the next event."""
        data, type = event.data, event.type
        if type == "agent.hired" and data.get("kind", "llm") != "llm":
            self._programs.add(str(data.get("agent_id")))
        elif type == "node.assigned":
            self._begin(event, "queued", agent=str(data.get("agent_id", "")))
        elif type == "node.started":
            self._start(event)
        elif type == "node.waiting":
            self._wait(event)
        elif type in NODE_ENDS:
            self._end(event)
        elif type in ("turn.added", "tool.result", "model.failed", "call.lost"):
            self._step(event)
        elif type in ("message.sent", "question.asked", "question.answered"):
            self._say(event)
        elif type == "work.stopped":
            self.stops.append(Stop(start=event.at, end=None))
        elif type == "work.resumed" and self.stops and self.stops[-1].end is None:
            # A team whose work began during a stop is told of the end alone.
            self.stops[-1] = replace(self.stops[-1], end=event.at)

    def _start(self, event: Event) -> None:
        data = event.data
        node, agent = str(data.get("node_id")), str(data.get("agent_id", ""))
        before = self._open.get(node)
        # A node that starts while it runs was cut off: nothing was written between its last step
        # and the crash, so the whole open span is the interruption.
        if before is not None and before.phase in WORK_PHASES:
            before.phase = "interrupted"
            before.label = "The server stopped or crashed"
        phase: Phase = "program" if agent in self._programs else "model"
        self._begin(event, phase, agent=agent, attempt=int(data.get("attempt", 1)))

    def _wait(self, event: Event) -> None:
        data = event.data
        before = self._open.get(str(data.get("node_id")))
        if before is None:
            return  # a pending node that needs a decision: nobody works on it yet
        on: list[str] = data.get("on") or []
        phase = wait_phase(on, data.get("reason"), after_failure=before.has_failed)
        self._begin(event, phase, label=str(data.get("reason") or ""))

    def _end(self, event: Event) -> None:
        node = str(event.data.get("node_id"))
        if (run := self._open.get(node)) is not None:
            if run.phase == "model":
                run.phase = "other"  # no reply came
            self._close(node, event, failed=event.type == "node.failed")
            del self._open[node]

    def _step(self, event: Event) -> None:
        data = event.data
        node = str(data.get("node_id"))
        run = self._open.get(node)
        if run is None:
            return
        match event.type:
            case "turn.added":
                self._reply(node, run, event)
            case "tool.result":
                self._answer(node, run, event)
            case "model.failed":
                self._tick(event, "failure", run.agent_id, node, str(data.get("reason")), True)
                self._close(node, event, failed=True)
                run.has_failed = True
            case _:  # call.lost
                self._charge_lost(node, run, event)

    def _reply(self, node: str, run: _Open, event: Event) -> None:
        data = event.data
        calls: list[dict[str, Any]] = data.get("calls") or []
        run.calls = {str(call["id"]): str(call["name"]) for call in calls}
        run.has_failed = False
        is_working = run.phase in WORK_PHASES
        self._close(node, event, tokens=int(data.get("tokens") or 0), usd=data.get("usd"))
        if run.calls and is_working:
            run.phase, run.label = "tool", ", ".join(dict.fromkeys(run.calls.values()))

    def _answer(self, node: str, run: _Open, event: Event) -> None:
        data = event.data
        failed = bool(data.get("failed"))
        self._tick(event, "tool", run.agent_id, node, str(data.get("tool")), failed)
        run.calls.pop(str(data.get("call_id")), None)
        if run.phase == "tool" and not run.calls:
            self._close(node, event, failed=failed)

    def _say(self, event: Event) -> None:
        data = event.data
        node = data.get("node_id")
        if event.type == "question.answered":
            run = self._open.get(str(node))
            if run is not None and not data.get("is_closed"):
                self._tick(event, "answer", run.agent_id, node, str(data.get("text")), False)
            return
        kind: TickKind = "question" if event.type == "question.asked" else "message"
        sender, recipient = str(data.get("sender")), str(data.get("recipient"))
        agent = sender if sender.startswith("agent") else recipient
        # Reports between agents hold fences.
        self._tick(event, kind, agent, node, without_marks(str(data.get("text"))), False)

    def _tick(
        self, event: Event, kind: TickKind, agent: str, node: str | None, label: str, failed: bool
    ) -> None:
        label = label[:LABEL_CHARACTERS]
        at, seq = event.at, event.seq
        tick = Tick(
            seq=seq, at=at, kind=kind, agent_id=agent, node_id=node, label=label, failed=failed
        )
        self.ticks.append(tick)

    def _begin(
        self,
        event: Event,
        phase: Phase,
        *,
        agent: str | None = None,
        attempt: int | None = None,
        label: str = "",
    ) -> None:
        """End the node's span, if it has one, and begin the next."""
        node = str(event.data.get("node_id"))
        run = self._open.get(node)
        if run is None:
            run = self._open[node] = _Open(agent or "", phase, event.at)
        else:
            # If the node is queued again, it was interrupted while the model was answering: that
            # time was the model's. Otherwise there was no model call: the runtime did other work.
            if run.phase == "model" and phase != "queued":
                run.phase = "other"
            self._close(node, event)
        run.phase, run.label = phase, label[:LABEL_CHARACTERS]
        run.agent_id = agent or run.agent_id
        run.attempt = run.attempt if attempt is None else attempt

    def _close(
        self,
        node: str,
        event: Event,
        *,
        failed: bool = False,
        tokens: int = 0,
        usd: float | None = None,
    ) -> None:
        """End the open span at this event; a run goes on with its model."""
        run = self._open[node]
        if event.at > run.start or tokens or usd or failed or run.lost_tokens:
            span = self._span(node, run, event.at, event.seq, failed, tokens, usd)
            self.closed.append(span)
            run.number += 1
        run.start, run.label, run.lost_tokens, run.lost_usd = event.at, "", 0, None
        if run.phase in ("tool", "other"):
            run.phase = "model"

    def _charge_lost(self, node: str, run: _Open, event: Event) -> None:
        """Add the estimated cost of a lost call to the span in which it was lost.

        After a crash that is the span before the one that has just begun; after a stop, the one
        before the node was queued again.
        """
        tokens, usd = int(event.data.get("tokens") or 0), event.data.get("usd")
        if run.start < event.at:
            run.lost_tokens, run.lost_usd = tokens, usd
            return
        for index in range(len(self.closed) - 1, max(-1, len(self.closed) - 500), -1):
            span = self.closed[index]
            if span.node_id == node and span.phase != "queued":
                added = span.usd if usd is None else (span.usd or 0.0) + usd
                self.closed[index] = replace(span, tokens=span.tokens + tokens, usd=added)
                return

    def _span(
        self,
        node: str,
        run: _Open,
        end: datetime | None,
        seq: int,
        failed: bool = False,
        tokens: int = 0,
        usd: float | None = None,
    ) -> Span:
        return Span(
            node_id=node,
            agent_id=run.agent_id,
            number=run.number,
            phase=run.phase,
            start=run.start,
            end=end,
            seq=seq,
            attempt=run.attempt,
            label=run.label,
            failed=failed,
            tokens=tokens + run.lost_tokens,
            usd=usd if run.lost_usd is None else (usd or 0.0) + run.lost_usd,
        )
