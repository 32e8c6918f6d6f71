"""Research routes: background research, and search in what a team knows."""

import asyncio
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.deps import Api, ApiDep, Idempotent, Limit, PersonDep
from agiraph.api.knowledge_views import PageTextView, SearchHitView
from agiraph.api.presenters import node_view
from agiraph.api.problems import documented
from agiraph.api.research_presenters import research_view, with_sources
from agiraph.api.research_views import ResearchView
from agiraph.api.routers import api_router
from agiraph.api.views import NodeView
from agiraph.domain.agents import Agent
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import NodeId, TeamId, ThreadId
from agiraph.domain.passages import Passage, sections
from agiraph.domain.research import Depth
from agiraph.home.notes import Notes
from agiraph.home.scopes import Scope
from agiraph.home.specialists import specialists
from agiraph.services.knowledge import notes
from agiraph.services.members.hiring import Hirer
from agiraph.services.research import starting
from agiraph.store import nodes, passages, research, teams
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx

router: APIRouter = api_router("knowledge")

MOST_HITS = 50
MOST_BYTES = 8 * 2**20


class NewResearch(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"goal": "Which vector databases are alive?"}}
    )

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


class SearchRequest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"query": "earnings"}}
    )

    query: str = Field(min_length=1, max_length=2000)
    limit: int = Field(default=20, ge=1, le=MOST_HITS)


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
    return with_sources(view, published)


@router.get("/teams/{team}/research", responses=documented(404))
async def list_research(team: str, api: ApiDep, limit: Limit = 50) -> list[ResearchView]:
    """List a team's research jobs, the newest first, without the sources of their reports."""

    def look(tx: Tx) -> list[ResearchView]:
        found = research.of_team(tx, teams.find(tx, team).id, limit=limit)
        return [research_view(tx, job.id) for job in found]

    return await api.store.read(look)


def _sources_file(api: Api, team_id: TeamId, node_id: NodeId) -> str:
    """Return the published list of a report's sources; empty if there is none."""
    with api.home.team(team_id).folder as folder:
        try:
            path = f"nodes/{node_id}/published/sources.json"
            return folder.read(path, limit=MOST_BYTES).decode(errors="replace")
        except Refused:
            return ""


@router.post("/teams/{team}/memory/search", responses=documented(404))
async def search_memory(team: str, body: SearchRequest, api: ApiDep) -> list[SearchHitView]:
    """Search a team's notes, insights, web pages and reports; whole sections, best first."""

    def coordinator(tx: Tx) -> Agent:
        return teams.coordinator(tx, teams.find(tx, team).id)

    agent = await api.store.read(coordinator)
    files = await asyncio.to_thread(_files, api, agent)
    if await api.store.read(notes.is_stale, agent, files):  # a person edited a note
        await api.store.write(notes.index, agent, files)
    found: list[Passage] = await api.store.read(
        passages.find, body.query, team_id=agent.team_id, owner=agent.id, limit=body.limit
    )
    return [_as_view(hit) for hit in found]


@router.get("/teams/{team}/memory/page", responses=documented(404))
async def get_page_text(
    team: str, api: ApiDep, url: Annotated[str, Query(min_length=1, max_length=4000)]
) -> PageTextView:
    """Return the text of a web page that agents of a team have read, by its URL."""

    def read(tx: Tx) -> PageTextView:
        found = passages.of_ref(tx, team_id=teams.find(tx, team).id, kind="page", ref=url)
        if not found:
            raise NotFound("page", url, known="Agents of this team have read no page with it.")
        first = found[0]
        heading = sections(first.text)[0].title
        return PageTextView(
            url=url,
            title=first.title.removesuffix(heading).removesuffix(" · ") or heading or url,
            text="\n\n".join(part.text for part in found),
            sources=list(first.label.sources),
            read_at=first.created_at,
        )

    return await api.store.read(read)


def _as_view(hit: Passage) -> SearchHitView:
    return SearchHitView(
        kind=hit.kind,
        ref=hit.ref,
        title=hit.title,
        text=hit.text,
        sources=list(hit.label.sources),
        created_at=hit.created_at,
    )


def _files(api: Api, agent: Agent) -> dict[str, str]:
    folder = api.home.team(agent.team_id)
    scope = Scope(role=agent.role, agent=agent.name, node=NodeId("none"), team=folder)
    kept = Notes(scope)
    return {kept.full(name): text for name, text in kept.files().items()}
