"""Evidence, as rows: the ledgers of research jobs."""

from datetime import datetime

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.value import value
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.evidence import Checked, EvidenceRow, SourceClass, Stance
from agiraph.features.research.model.jobs import ResearchJob
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS, PAGES


@value
class StoredEvidence:
    """An entry of a ledger, with the call that noted it."""

    id: str
    """The job's id and the entry's number."""
    team_id: TeamId
    job_id: NodeId
    number: int
    node_id: NodeId
    """The reader that noted it."""
    call_id: str
    claim: str
    quote: str
    url: str
    page_hash: str
    place: int
    title: str
    published: str
    fetched_at: datetime
    source_class: SourceClass
    question: int
    stance: Stance
    label: Label
    checked: Checked
    created_at: datetime

    def as_row(self, *, of: NodeId) -> EvidenceRow:
        """Return the entry as the ledger of a job shows it. In the ledger of a later job it belongs
        to none of that job's sub-questions."""
        return EvidenceRow(
            id=f"e{self.number}",
            job_id=self.job_id,
            claim=self.claim,
            quote=self.quote,
            url=self.url,
            page_hash=self.page_hash,
            offset=self.place,
            title=self.title,
            published=self.published,
            fetched_at=self.fetched_at,
            source_class=self.source_class,
            question=self.question if self.job_id == of else 0,
            stance=self.stance,
            label=self.label,
            checked=self.checked,
        )


EVIDENCE = Table("evidence", StoredEvidence)
TABLES = (EVIDENCE, PAGES, JOBS)


def of_call(tx: Tx, node_id: NodeId, call_id: str) -> StoredEvidence | None:
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
        found |= {entry.number: entry.as_row(of=job_id) for entry in entries}
    return [found[number] for number in sorted(found)]


def earlier(tx: Tx, job: ResearchJob) -> list[EvidenceRow]:
    """Return the entries that the earlier jobs of a job's trigger have noted."""
    where = f"job_id in ({research.EARLIER}) order by created_at, id"
    noted = EVIDENCE.select(tx, where, **research.before(job))
    return [entry.as_row(of=job.id) for entry in noted]


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
