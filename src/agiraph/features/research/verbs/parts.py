"""Parts: start the readers of a research job and its other steps, and resume it when one ends."""

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.waits import WaitingOn
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import planning, texts, waiting
from agiraph.core.services.members import roster
from agiraph.core.store import nodes, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import kinds as research_kinds
from agiraph.features.research.model.jobs import Part, Reading
from agiraph.features.research.verbs import reading_budget
from agiraph.features.research.verbs.starting import RESEARCHER, TOOLS

READER = "reader"
_TITLES: dict[Part, str] = {
    "gaps": "Look for gaps",
    "writing": "Write the report",
    "support": "Check the quotations",
}


def start_reader(
    tx: Tx, lease: Lease, job: WorkNode, reading: Reading, budget: Budget, *, model: str
) -> WorkNode:
    """Start a reader for one sub-question of a job."""
    return planning.create(
        tx,
        team_id=job.team_id,
        task=reading.question,
        title=texts.truncate(f"Read: {texts.first_line(reading.question)}", texts.TITLE),
        source="delegation",
        creator_id=lease.agent_id,
        assignee_id=_free_reader(tx, lease, model),
        parent_id=job.id,
        budget=budget,
        label=job.label | reading.label,
        kind=research_kinds.step("reader", is_labelled=bool(job.label)),
    )


def start_part(tx: Tx, lease: Lease, job: WorkNode, part: Part, *, model: str) -> WorkNode:
    """Start a part that asks its model one question.

    The job's own agent does it while the job waits. The check of quotations goes to a reader
    instead, whose model may be cheaper.
    """
    return planning.create(
        tx,
        team_id=job.team_id,
        task=f"{_TITLES[part]}.",
        title=_TITLES[part],
        source="delegation",
        creator_id=lease.agent_id,
        assignee_id=_free_reader(tx, lease, model) if part == "support" else lease.agent_id,
        parent_id=job.id,
        budget=reading_budget.for_writing(),
        label=job.label,
        kind=research_kinds.step(part, is_labelled=bool(job.label)),
    )


def _free_reader(tx: Tx, lease: Lease, model: str) -> AgentId:
    """Return a reader of this job that has no work; hire one if there is none.

    If the team has no place for another agent, the job's own agent reads, one question after the
    other.
    """
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
            model=model or researcher.model,
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
