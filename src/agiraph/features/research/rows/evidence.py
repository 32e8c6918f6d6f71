"""Evidence, as rows: the ledgers of research jobs."""

from dataclasses import replace

from agiraph.core.domain.ids import NodeId
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import EvidenceRow, ResearchJob
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS, PAGES

EVIDENCE = Table("evidence", EvidenceRow)
TABLES = (EVIDENCE, PAGES, JOBS)


def of_call(tx: Tx, node_id: NodeId, call_id: str) -> EvidenceRow | None:
    """Return the evidence that a tool call has recorded; None if it recorded none."""
    found = EVIDENCE.select(tx, "node_id = :node and call_id = :call", node=node_id, call=call_id)
    return found[0] if found else None


def of_job(tx: Tx, job_id: NodeId) -> list[EvidenceRow]:
    """Return the ledger of a job, with the entries of the jobs that it continues, ordered by
    number.

    An earlier job that starts again may use a number of a later one; then the later job's entry is
    returned.
    """
    found: dict[int, EvidenceRow] = {}
    for each in research.chain(tx, job_id):
        entries = EVIDENCE.select(tx, "job_id = :job order by number", job=each)
        found |= {entry.number: _shown(entry, job_id) for entry in entries}
    return [found[number] for number in sorted(found)]


def _shown(entry: EvidenceRow, job_id: NodeId) -> EvidenceRow:
    """Return a stored entry as the ledger of a job shows it. In the ledger of a later job it
    belongs to none of that job's sub-questions."""
    question = entry.question if entry.job_id == job_id else 0
    return replace(entry, id=f"e{entry.number}", question=question)


def earlier(tx: Tx, job: ResearchJob) -> list[EvidenceRow]:
    """Return the entries that the earlier jobs of a job's trigger have noted."""
    where = f"job_id in ({research.EARLIER}) order by created_at, id"
    noted = EVIDENCE.select(tx, where, **research.before(job))
    return [_shown(entry, job.id) for entry in noted]


def count(tx: Tx, job_id: NodeId) -> int:
    """Return how many entries a job itself has noted."""
    row = tx.one("select count(*) from evidence where job_id = :job", job=job_id)
    return 0 if row is None else row[0]


def next_number(tx: Tx, job_id: NodeId) -> int:
    """Return the number of the next entry, after those of this job and of the jobs that it
    continues.

    The caller holds the job's row lock.
    """
    numbers = [0]
    for each in research.chain(tx, job_id):
        row = tx.one("select max(number) from evidence where job_id = :job", job=each)
        numbers.append(0 if row is None or row[0] is None else row[0])
    return max(numbers) + 1
