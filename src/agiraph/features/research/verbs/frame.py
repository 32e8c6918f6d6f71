"""Frame: decides from the rows what a research job does next, and starts its parts, in one
transaction for each step.

A job goes through its phases: brief, reading, gaps, reading again, writing, support, ended. Each
step that needs a model, other than the brief, is a part: a child node for which the job waits. So
after a crash, a wait or a message the next step follows from the rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import AgentId, NodeId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WaitingOn, WorkNode
from agiraph.core.services.board import planning as tasks
from agiraph.core.services.board import texts, waiting
from agiraph.core.services.members import roster
from agiraph.core.store import nodes, teams, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import kinds as research_kinds
from agiraph.features.research.model.jobs import Part, Phase, Reading, ResearchJob
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import planning, reading_budget, standing_questions
from agiraph.features.research.verbs.starting import RESEARCHER, TOOLS

READER = "reader"
_TITLES: dict[Part, str] = {
    "gaps": "Look for gaps",
    "writing": "Write the report",
    "support": "Check the quotations",
}
MORE_ROUNDS = 3
"""The most rounds that messages of persons may add to those of the depth."""
MOST_WRITINGS = 1 + MORE_ROUNDS
"""A message that arrives while a report is written for the last of these times is not used."""
_EARLY = frozenset(
    {StopReason.MONEY_SPENT, StopReason.TOKENS_SPENT, StopReason.TIME_SPENT, StopReason.CALLS_SPENT}
)
"""Stop reasons of a reader that the budget cut off before it was done."""


@dataclass(frozen=True, slots=True)
class NeedsBrief:
    """The job has no brief yet: its model is asked for one."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The job waits for these parts."""

    on: tuple[WaitingOn, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Delivers:
    """Nothing is left to read or write: the run renders and delivers the report."""


@dataclass(frozen=True, slots=True)
class NothingNew:
    """The question was asked before, and nothing new was found: the job ends without a report."""

    why: str


@dataclass(frozen=True, slots=True)
class Fails:
    """Nothing was noted, and readers failed: the job fails for the reason of the last of them."""

    reason: StopReason
    why: str


Next = NeedsBrief | Waits | Delivers | NothingNew | Fails


@dataclass(slots=True)
class _Step:
    """One step of a job, in one transaction."""

    tx: Tx
    lease: Lease
    node: WorkNode
    job: ResearchJob
    reader_model: str

    def set(self, **changes: Any) -> None:
        JOBS.update(self.tx, self.job.id, **changes)
        self.job = replace(self.job, **changes)

    def wait(self, on: list[NodeId], reason: str) -> Waits:
        waited = tuple(WaitingOn("node", each) for each in on)
        for each in waited:
            waits.open(self.tx, self.lease, call_id="", waiting_on=each, reason=reason)
        return Waits(waited, reason)


def advance(tx: Tx, lease: Lease, *, reader_model: str = "") -> Next:
    """Take the next step of a job and return what it waits for, or what its run must do.

    Locks the thread's row, then the job's.
    """
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id)
    # A crash may have come after the waits were opened and before the job was parked.
    waits.drop(tx, node.id)
    step = _Step(tx, lease, node, JOBS.get(tx, node.id, lock=True), reader_model)
    if step.job.phase == "ended":
        _go_on(step)
    return _PHASES[step.job.phase](step)


def _go_on(step: _Step) -> None:
    """Start again after a report: a limit had ended the job, and somebody has raised it."""
    job = step.job
    budget = reading_budget.more_calls(step.node.budget, job)
    NODES.update(step.tx, step.node.id, budget=budget)
    step.node = replace(step.node, budget=budget)
    if job.brief is None:
        return step.set(phase="brief")
    found = {reader.id: reader for reader in reading_budget.readers(step.tx, job.id)}
    # Questions whose readers did not end well are read for again; the ledger keeps what they noted.
    readings = tuple(
        replace(each, node_id=None) if _has_failed(found, each) else each for each in job.readings
    )
    rounds = job.round + max(1, job.limits.rounds)
    changes = {"readings": readings, "rounds": rounds, "stopped": "", "missing": ()}
    return step.set(phase="reading", part_id=None, **changes)


def _has_failed(found: Mapping[NodeId, WorkNode], reading: Reading) -> bool:
    reader = None if reading.node_id is None else found.get(reading.node_id)
    return reader is not None and reader.status is not NodeStatus.COMPLETED


def _failure(step: _Step) -> Fails | None:
    """Return why a job has nothing of its own to report; None if a reader noted something, if none
    of them failed, or if a limit ended the job."""
    if step.job.stopped or evidence.count(step.tx, step.job.id):
        return None
    found = {reader.id: reader for reader in reading_budget.readers(step.tx, step.job.id)}
    failed = [
        found[id] for each in step.job.readings if _has_failed(found, each) and (id := each.node_id)
    ]
    if not failed:
        return None
    last = max(failed, key=lambda reader: reader.id)
    return Fails(last.stop_reason or StopReason.NO_RESULT, why_failed(last))


def _brief(step: _Step) -> Next:
    return NeedsBrief()


def _read(step: _Step) -> Next:
    """Start readers, up to the number that may read at once; take the next phase when all have
    ended."""
    found = {reader.id: reader for reader in reading_budget.readers(step.tx, step.job.id)}
    reading = [id for id, reader in found.items() if not reader.status.is_final]
    shortage: StopReason | None = None
    while len(reading) < step.job.limits.readers and shortage is None:
        unread = [each for each in step.job.readings if each.node_id is None]
        if not unread:
            break
        left = reading_budget.left(step.tx, step.node)
        shortage = left.shortage
        if shortage is None:
            rounds = max(step.job.rounds - step.job.round, 0)
            budget = reading_budget.for_reader(left, step.job, waiting=len(unread), rounds=rounds)
            reading.append(_start_reader(step, unread[0], budget))
    if reading:
        return step.wait(reading, _progress(step))
    ended = [found[each.node_id].stop_reason for each in step.job.readings if each.node_id]
    reason = shortage or next((why for why in reversed(ended) if why in _EARLY), None)
    if reason is not None:
        step.set(stopped=reason.value)
    return _after_reading(step)


def _start_reader(step: _Step, chosen: Reading, budget: Budget) -> NodeId:
    title = texts.truncate(f"Read: {texts.first_line(chosen.question)}", texts.TITLE)
    label = step.node.label | chosen.label
    id = _start(step, "reader", budget, task=chosen.question, title=title, label=label)
    begun = replace(chosen, node_id=id)
    readings = tuple(begun if each == chosen else each for each in step.job.readings)
    step.set(readings=readings)
    return id


def _progress(step: _Step) -> str:
    begun = sum(each.node_id is not None for each in step.job.readings)
    return f"reading: {begun} of {len(step.job.readings)} questions begun"


def _after_reading(step: _Step) -> Next:
    """Look for gaps if a round and enough budget for a reader are left; otherwise write the
    report."""
    job, said = step.job, len(planning.heard(step.tx, step.lease.thread_id))
    if said > job.heard and job.rounds < job.limits.rounds + MORE_ROUNDS:
        step.set(rounds=max(job.rounds, job.round + 1))
    may_read = reading_budget.left(step.tx, step.node).shortage is None
    phase: Phase = "gaps" if step.job.round < step.job.rounds and may_read else "writing"
    step.set(phase=phase, part_id=None, heard=said)
    return _PHASES[phase](step)


def _gaps(step: _Step) -> Next:
    if (waiting := _part(step, "gaps", "looking for gaps")) is not None:
        return waiting
    is_unread = any(each.node_id is None for each in step.job.readings)
    phase: Phase = "reading" if is_unread else "writing"
    step.set(phase=phase, part_id=None, round=step.job.round + 1)
    return _PHASES[phase](step)


def _write(step: _Step) -> Next:
    if (failure := _failure(step)) is not None:
        return failure
    if why := standing_questions.has_nothing_new(step.tx, step.job):
        return NothingNew(why)
    if not evidence.of_job(step.tx, step.job.id):
        return Delivers()  # without evidence there is nothing that a model could write truthfully
    if (waiting := _part(step, "writing", "writing the report")) is not None:
        return waiting
    made = reading_budget.parts(step.tx, step.job.id)
    writings = sum(part_of(part) == "writing" for part in made)
    if _has_unheard(step) and writings < MOST_WRITINGS:
        return _after_reading(step)
    if step.job.limits.support == "none" or not step.job.draft:
        return _deliver(step)
    step.set(phase="support", part_id=None)
    return _support(step)


def _has_unheard(step: _Step) -> bool:
    return len(planning.heard(step.tx, step.lease.thread_id)) > step.job.heard


def _support(step: _Step) -> Next:
    return _part(step, "support", "checking the quotations") or _deliver(step)


def _deliver(step: _Step) -> Delivers:
    """Deliver the report. It says so if persons have sent messages since it was written."""
    if _has_unheard(step):
        step.set(missing=planning.with_unused(step.job.missing))
    return Delivers()


def _part(step: _Step, part: Part, what: str) -> Waits | None:
    """Return the wait for the part of this phase, starting it first; None if it has ended."""
    if step.job.part_id is None:
        title, budget = _TITLES[part], reading_budget.for_writing()
        label = step.node.label
        step.set(part_id=_start(step, part, budget, task=f"{title}.", title=title, label=label))
    elif NODES.get(step.tx, step.job.part_id).status.is_final:
        return None
    assert step.job.part_id is not None
    return step.wait([step.job.part_id], what)


def _start(
    step: _Step, part: Part, budget: Budget, *, task: str, title: str, label: Label
) -> NodeId:
    """Start a part of the job.

    A reader reads, and checks the quotations, as its model may be cheaper; the rest does the job's
    own agent while the job waits.
    """
    job, is_reader = step.node, part in ("reader", "support")
    return tasks.create(
        step.tx,
        team_id=job.team_id,
        task=task,
        title=title,
        source="delegation",
        creator_id=step.lease.agent_id,
        assignee_id=_free_reader(step) if is_reader else step.lease.agent_id,
        parent_id=job.id,
        budget=budget,
        label=label,
        kind=research_kinds.step(part, is_labelled=bool(job.label)),
    ).id


def _free_reader(step: _Step) -> AgentId:
    """Return a reader of this job that has no work; hire one if there is none.

    If the team has no place for another agent, the job's own agent reads, one question after the
    other.
    """
    tx, lease = step.tx, step.lease
    for agent in teams.hired_from(tx, lease.team_id, lease.thread_id, role=READER):
        if not nodes.has_open(tx, agent.id):
            return agent.id
    researcher = AGENTS.get(tx, lease.agent_id)
    # The number of the job is that of its researcher: readers of `researcher-7` are `reader-7`, ….
    stem = f"{READER}{researcher.name.removeprefix(RESEARCHER)}"
    try:
        return roster.hire(
            tx,
            lease.team_id,
            name=roster.free_name(tx, lease.team_id, stem),
            role=READER,
            model=step.reader_model or researcher.model,
            tools=TOOLS,
            effort=researcher.effort,
            persistent=False,
            parent_thread_id=lease.thread_id,
        ).id
    except Refused:
        return lease.agent_id


def why_failed(part: WorkNode) -> str:
    """Return why a part failed, in words of the runtime and never of the part's model."""
    reason = part.stop_reason or StopReason.NO_RESULT
    if reason is StopReason.MODEL_REFUSED and part.result:
        return part.result
    return f"It failed at “{part.title}”: {reason.words}."


def ended(tx: Tx, part: WorkNode, text: str) -> None:
    """Resume the job that waits for this part, which has ended, and add the part's time to the
    job's.

    `text` is what the part's end says: a part that failed keeps it as its result, so that the job
    can report it. No agent reflects on a part's thread: its findings are in the ledger.
    """
    if part.status is not NodeStatus.COMPLETED and part.result is None:
        NODES.update(tx, part.id, result=text)
    if part.thread_id is not None:
        THREADS.update(tx, part.thread_id, harvested_at=tx.now)
    reading_budget.count_time(tx, part)
    waiting.resume(tx, WaitingOn("node", part.id))


_PHASES: dict[Phase, Callable[[_Step], Next]] = {
    "brief": _brief,
    "reading": _read,
    "gaps": _gaps,
    "writing": _write,
    "support": _support,
}
