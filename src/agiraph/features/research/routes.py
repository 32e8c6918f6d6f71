"""Research routes: background research, and the jobs with their plan, ledger and sources."""

import asyncio
import json
from collections import Counter
from typing import Any

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, Idempotent, Limit, PersonDep
from agiraph.api.feature_views.research import (
    CitationView,
    EvidenceView,
    ReadPageView,
    ResearchSourceView,
    ResearchView,
    SubQuestionView,
)
from agiraph.api.presenters import node_view
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.api.views import NodeView
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, TeamId, ThreadId
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.specialists import specialists
from agiraph.core.services.board import jobs, texts
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import nodes, spend, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import sources
from agiraph.features.research.model.jobs import Depth, EvidenceRow, ResearchJob
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import reading_budget, starting

router: Router = Router("knowledge")

MOST_BYTES = 8 * 2**20


class NewResearch(Body, strict=False, example={"goal": "Which vector databases are alive?"}):
    goal: str = Field(min_length=1, max_length=starting.LONGEST_GOAL)
    depth: Depth | None = Field(
        default=None, description="How thorough it is; without it, the kind of question decides."
    )
    max_searches: int | None = Field(
        default=None, ge=0, le=starting.MOST_SEARCHES, description="Without it, as of the depth."
    )
    max_pages: int | None = Field(
        default=None, ge=0, le=starting.MOST_PAGES, description="Without it, as of the depth."
    )
    continues: str | None = Field(
        default=None, description="The node of an earlier research whose findings it has."
    )


@router.post("/agents/{agent}/research", status_code=201, responses=documented(404, 409))
async def start_research(
    agent: str, body: NewResearch, api: ApiDep, person: PersonDep, idempotently: Idempotent
) -> NodeView:
    """Start research on a question in the background; the report arrives in the inbox."""
    # Read before the transaction, which must not wait for files.
    known = await asyncio.to_thread(specialists, api.home)

    def start(tx: Tx) -> NodeView:
        asked = AGENTS.get(tx, agent)
        hirer = Hirer(asked, ThreadId(""), known, api.check_model)
        earlier = body.continues and nodes.find(tx, asked.team_id, body.continues)
        node = starting.start(
            tx,
            hirer,
            body.goal,
            depth=body.depth,
            searches=body.max_searches,
            pages=body.max_pages,
            person_id=person,
            earlier=earlier or None,
        )
        return node_view(tx, node)

    return await idempotently(start, status=201)  # pyright: ignore[reportReturnType]


@router.get("/nodes/{node}/research", responses=documented(404))
async def get_research(node: str, api: ApiDep) -> ResearchView:
    """Return a research job: plan, reading agents, pages, ledger, cost and the report's sources."""
    view = await api.store.read(research_view, NodeId(node))
    published = await asyncio.to_thread(_sources_file, api, TeamId(view.team_id), NodeId(node))
    return _with_sources(view, published)


@router.read("/teams/{team}/research", 404)
def list_research(tx: Tx, team: str, limit: Limit = 50) -> list[ResearchView]:
    """List a team's research jobs, the newest first, without the sources of their reports."""
    found = research.of_team(tx, teams.find(tx, team).id, limit=limit)
    return [research_view(tx, job.id) for job in found]


def research_view(tx: Tx, node_id: NodeId) -> ResearchView:
    """Return a job without the numbered sources of its report, which are in a published file."""
    job, node = JOBS.get(tx, node_id), NODES.get(tx, node_id)
    brief, ledger = job.brief, evidence.of_job(tx, node_id)
    limits = node.budget.calls
    return ResearchView.of(
        job,
        node_id=node.id,
        team_id=node.team_id,
        title=texts.subject_of(node),
        asked_of=node.asked_of,
        state=jobs.state_of(node),
        kind=None if brief is None else brief.kind,
        language="" if brief is None else brief.language,
        sub_questions=_sub_questions(tx, job, ledger),
        assumptions=() if brief is None else brief.assumptions,
        searches=jobs.used_calls(tx, node)[starting.SEARCH],
        searches_limit=limits.get(starting.SEARCH, 0),
        pages=_pages(tx, job, ledger),
        pages_limit=limits.get(starting.FETCH, 0),
        usd=spend.spent(tx, node_id).usd,
        usd_limit=node.budget.usd,
        engine=reading_budget.engines(tx, job),
        evidence=[EvidenceView.of(row, site=sources.site_of(row.url)) for row in ledger],
        sources=[],
        citations=[],
        struck=len(job.struck),
        ended_at=node.ended_at,
    )


def _sub_questions(tx: Tx, job: ResearchJob, ledger: list[EvidenceRow]) -> list[SubQuestionView]:
    readers = reading_budget.readers(tx, job.id)
    by_id: dict[NodeId | None, WorkNode] = {reader.id: reader for reader in readers}
    noted = Counter(row.question for row in ledger if row.job_id == job.id)
    return [
        SubQuestionView.of(
            each,
            state=jobs.state_of(reader) if (reader := by_id.get(each.node_id)) else "queued",
            evidence=noted[each.number],
        )
        for each in job.readings
    ]


def _pages(tx: Tx, job: ResearchJob, ledger: list[EvidenceRow]) -> list[ReadPageView]:
    subjects = () if job.brief is None else job.brief.subjects
    noted = Counter(row.url for row in ledger)
    return [
        ReadPageView(
            url=url,
            title=title,
            site=sources.site_of(url),
            source_class=sources.classify(url, subjects=subjects),
            evidence=noted[url],
        )
        for url, title in research.read_pages(tx, job.id)
    ]


def _sources_file(api: Api, team_id: TeamId, node_id: NodeId) -> str:
    """Return the published list of a report's sources; empty if there is none."""
    with api.home.team(team_id).folder as folder:
        try:
            path = f"nodes/{node_id}/published/sources.json"
            return folder.read(path, limit=MOST_BYTES).decode(errors="replace")
        except Refused:
            return ""


def _with_sources(view: ResearchView, published: str) -> ResearchView:
    """Return the view with the sources that the published file `sources.json` lists; unchanged if
    the file is broken."""
    try:
        made: Any = json.loads(published)
        listed = [_source(each) for each in made["sources"]]
        marks = [
            CitationView.model_validate({**each, "is_confirmed": each.get("confirmed")})
            for each in made["citations"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return view
    return view.model_copy(update={"sources": listed, "citations": marks})


def _source(given: dict[str, Any]) -> ResearchSourceView:
    renamed = {"source_class": "class", "is_confirmed": "confirmed", "is_checked": "checked"}
    shown = {name: given[known] for name, known in renamed.items()}
    return ResearchSourceView.model_validate({**given, **shown})
