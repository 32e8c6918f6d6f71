"""Research, as rows: jobs, and the pages that they have read."""

from collections.abc import Sequence

from agiraph.domain.ids import NodeId, TeamId, TriggerId
from agiraph.domain.research import ResearchJob, ResearchPage
from agiraph.store.rows import Table
from agiraph.store.tx import Tx

JOBS = Table("research_jobs", ResearchJob)
PAGES = Table("research_pages", ResearchPage)

LONGEST_CHAIN = 50
"""The most jobs that `chain` follows; damaged rows may form a cycle."""


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


def newest_text(tx: Tx, job_ids: Sequence[NodeId], url: str) -> list[str]:
    """Return the text of a page as the newest of these jobs that opened it has read it, one string
    for each fetched part; empty if none of the jobs opened it."""
    sql = "select text from research_pages where job_id = :job and url = :url"
    for job_id in reversed(job_ids):
        if rows := tx.all(sql, job=job_id, url=url):
            return [row[0] for row in rows]
    return []


def keep_page(tx: Tx, page: ResearchPage) -> None:
    """Store a page, unless the job has this text of this address already."""
    PAGES.insert_if_new(tx, page)


def pages_at(tx: Tx, job_id: NodeId, address: str) -> list[ResearchPage]:
    """Return the versions of a page that a job has read, the newest first."""
    where = "job_id = :job and address = :address order by fetched_at desc, id"
    return PAGES.select(tx, where, job=job_id, address=address)


def urls(tx: Tx, job_id: NodeId) -> list[str]:
    """Return the addresses of the pages that a job has read, in the order of reading."""
    sql = "select url from research_pages where job_id = :job order by fetched_at, id"
    return [row[0] for row in tx.all(sql, job=job_id)]


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
