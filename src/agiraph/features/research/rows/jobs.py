"""Research, as rows: jobs, and the pages that they have read."""

from collections.abc import Sequence
from typing import Any

from agiraph.core.domain.ids import NodeId, TeamId, TriggerId
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import ResearchJob, ResearchPage

JOBS = Table("research_jobs", ResearchJob)
PAGES = Table("research_pages", ResearchPage)

LONGEST_CHAIN = 50
"""The most jobs that `chain` follows; damaged rows may form a cycle."""

MOST_TEXTS = 30
"""The most earlier texts of one page that new words are compared with."""
EARLIER = (
    "select id from research_jobs where standing = :trigger and id <> :job "
    "and created_at <= :created"
)
"""The jobs that a trigger started before another of its jobs."""


def chain(tx: Tx, job_id: NodeId) -> list[NodeId]:
    """Return the ids of a job and of those that it continues, the oldest first."""
    found: list[NodeId] = []
    following: NodeId | None = job_id
    while following is not None and following not in found and len(found) < LONGEST_CHAIN:
        job = JOBS.find(tx, following)
        if job is None:
            break
        found.append(job.id)
        following = job.continues
    return found[::-1]


def of_team(tx: Tx, team_id: TeamId, *, limit: int) -> list[ResearchJob]:
    """Return the jobs of a team, the newest first."""
    where = "team_id = :team order by created_at desc, id desc limit :limit"
    return JOBS.select(tx, where, team=team_id, limit=limit)


def last_standing(tx: Tx, trigger_id: TriggerId) -> ResearchJob | None:
    """Return the last job that a trigger has started."""
    where = "standing = :trigger order by created_at desc, id desc limit 1"
    found = JOBS.select(tx, where, trigger=trigger_id)
    return found[0] if found else None


def earlier_standing(tx: Tx, job: ResearchJob) -> list[NodeId]:
    """Return the ids of the jobs that the trigger of a job started before it, the oldest first."""
    rows = tx.all(f"{EARLIER} order by created_at, id", **before(job))
    return [NodeId(row[0]) for row in rows]


def before(job: ResearchJob) -> dict[str, Any]:
    """Return the parameters of `EARLIER`."""
    return {"trigger": job.standing, "job": job.id, "created": to_micros(job.created_at)}


def earlier_texts(tx: Tx, job: ResearchJob, address: str) -> list[str]:
    """Return the different texts in which the earlier jobs of a trigger have read a page, the
    newest first, at most MOST_TEXTS."""
    sql = (
        f"select max(id), max(fetched_at) as newest from research_pages where job_id in ({EARLIER})"
        " and address = :address group by page_hash order by newest desc limit :most"
    )
    found = tx.all(sql, address=address, most=MOST_TEXTS, **before(job))
    return [PAGES.get(tx, row[0]).text for row in found]


def pages_at(tx: Tx, job_id: NodeId, address: str) -> list[ResearchPage]:
    """Return the versions of a page that a job has read, the newest first."""
    where = "job_id = :job and address = :address order by fetched_at desc, id"
    return PAGES.select(tx, where, job=job_id, address=address)


def read_pages(tx: Tx, job_id: NodeId) -> list[tuple[str, str]]:
    """Return address and title of the pages that a job has read, each address once, in order."""
    sql = "select url, title from research_pages where job_id = :job order by fetched_at, id"
    return list({row[0]: (row[0], row[1]) for row in tx.all(sql, job=job_id)}.values())


def count_pages(tx: Tx, job_id: NodeId) -> int:
    """Return how many different addresses a job has read."""
    sql = "select count(distinct address) from research_pages where job_id = :job"
    row = tx.one(sql, job=job_id)
    return 0 if row is None else row[0]


def texts(tx: Tx, job_ids: Sequence[NodeId]) -> dict[str, str]:
    """Return the texts of the pages of these jobs by the hash of the text."""
    sql = "select page_hash, text from research_pages where job_id = :job"
    return {row[0]: row[1] for job_id in job_ids for row in tx.all(sql, job=job_id)}
