"""State: the state of a research job, for people who watch it."""

from typing import NamedTuple

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import jobs
from agiraph.core.store import spend
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.evidence import EvidenceRow
from agiraph.features.research.model.jobs import ResearchJob
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import reading_budget
from agiraph.features.research.verbs.starting import FETCH, SEARCH


class Used(NamedTuple):
    searches: int
    pages: int


class ResearchState(NamedTuple):
    """A job with its readers and ledger, what it has used, and its limits."""

    job: ResearchJob
    """Holds the brief, depth, phase, round and sub-questions (`readings`)."""
    node: WorkNode
    readers: list[WorkNode]
    ledger: list[EvidenceRow]
    used: Used
    limits: Used
    usd: float


def used(tx: Tx, node: WorkNode) -> Used:
    """Return the searches and pages that the readers of a job have used; failed calls are not
    counted."""
    calls = jobs.used_calls(tx, node)
    return Used(calls[SEARCH], calls[FETCH])


def engines(tx: Tx, job: ResearchJob) -> str:
    """Return the names of the search engines that a job has used, which a key that is entered or
    removed changes; before its first search the one that it began with."""
    rows = (
        row for reader in reading_budget.readers(tx, job.id) for row in spend.of_node(tx, reader.id)
    )
    names = {row.model.removeprefix("search:") for row in rows if row.purpose == spend.SEARCH}
    return ", ".join(sorted(names)) or job.engine


def state_of(tx: Tx, job_id: NodeId) -> ResearchState:
    """Return the state of a research job; raise `NotFound` for any other node."""
    job, node = JOBS.get(tx, job_id), NODES.get(tx, job_id)
    calls = node.budget.calls
    return ResearchState(
        job=job,
        node=node,
        readers=reading_budget.readers(tx, job_id),
        ledger=evidence.of_job(tx, job_id),
        used=used(tx, node),
        limits=Used(calls.get(SEARCH, 0), calls.get(FETCH, 0)),
        usd=spend.spent(tx, job_id).usd,
    )
