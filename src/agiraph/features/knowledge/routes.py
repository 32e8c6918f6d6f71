"""Knowledge routes: agents' memories and insights with their changes, and search in what a team
knows."""

import asyncio
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field

from agiraph.api.deps import After, Api, ApiDep, Limit, PersonDep, Query
from agiraph.api.feature_views.knowledge import PageTextView, SearchHitView, UnconfirmedView
from agiraph.api.feature_views.known import Change, Insight, InsightType, Memory, Note
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import AgentId, NodeId
from agiraph.core.domain.text.passages import Passage, sections
from agiraph.core.home.scopes import Scope
from agiraph.core.store import teams
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.note_files import Notes
from agiraph.features.knowledge.verbs import items, notes

router: Router = Router("knowledge")
search_router: Router = Router("knowledge")

MOST_HITS = 50


def _is_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write a time as text, such as 2026-05-01T09:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_is_text), Field(strict=False)]


class NewMemory(Body, example={"content": "Likes figures before words."}):
    content: str = Field(min_length=1, max_length=items.MAX_CHARS)
    valid_until: Moment | None = None


class NewInsight(NewMemory, example={"type": "fact", "content": "Prices fall in May."}):
    type: InsightType
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class SearchRequest(Body, strict=False, example={"query": "earnings"}):
    query: str = Field(min_length=1, max_length=2000)
    limit: int = Field(default=20, ge=1, le=MOST_HITS)


@router.read("/agents/{agent}/memories", 404)
def list_memories(tx: Tx, agent: str, limit: Limit = 100) -> list[Memory]:
    """List what an agent remembers about the person."""
    return items.memories(tx, AgentId(AGENTS.get(tx, agent).id), limit=limit)


@router.write_once("/agents/{agent}/memories", 404, 409, status=201)
def add_memory(tx: Tx, agent: str, body: NewMemory, person: PersonDep) -> Memory:
    """Add a memory about the person."""
    found = AGENTS.get(tx, agent)
    return items.remember(tx, found, body.content, author=person, valid_until=body.valid_until)


@router.write("DELETE", "/agents/{agent}/memories/{memory}", 404, status=204)
def forget_memory(tx: Tx, agent: str, memory: str, person: PersonDep) -> None:
    """Remove a memory; this can be undone."""
    items.forget(tx, AgentId(AGENTS.get(tx, agent).id), memory, author=person)


@router.read("/agents/{agent}/insights", 404)
def list_insights(
    tx: Tx,
    agent: str,
    query: Annotated[str, Query(max_length=500)] = "",
    type: InsightType | None = None,
    limit: Limit = 100,
) -> list[Insight]:
    """List what an agent has learned for its work."""
    found = AGENTS.get(tx, agent)
    return items.insights(tx, found.id, query=query, type=type, limit=limit)


@router.write_once("/agents/{agent}/insights", 404, 409, status=201)
def add_insight(tx: Tx, agent: str, body: NewInsight, person: PersonDep) -> Insight:
    """Add an insight to an agent's knowledge."""
    return items.learn(
        tx,
        AGENTS.get(tx, agent),
        body.type,
        body.content,
        author=person,
        confidence=body.confidence,
        valid_until=body.valid_until,
    )


@router.write("DELETE", "/agents/{agent}/insights/{insight}", 404, status=204)
def remove_insight(tx: Tx, agent: str, insight: str, person: PersonDep) -> None:
    """Remove an insight; this can be undone."""
    items.remove(tx, AgentId(AGENTS.get(tx, agent).id), insight, author=person)


@router.read("/agents/{agent}/changes", 404)
def list_changes(
    tx: Tx,
    agent: str,
    after: After = "",
    before: Annotated[
        str, Query(description="The first id of the next page.", max_length=200)
    ] = "",
    limit: Limit = 100,
) -> list[Change]:
    """List the changes to an agent's knowledge, oldest first: the newest page, or the page before
    or after an id."""
    if after and before:
        raise Refused("Set `after` or `before`, not both.")
    found = AGENTS.get(tx, agent).id
    if after:
        return rows.changes(tx, found, after=after, limit=limit)
    return rows.lately(tx, found, before=before, limit=limit)


@router.write("POST", "/changes/{change}/undo", 404, 409)
def undo_change(tx: Tx, change: str) -> Change:
    """Undo a change."""
    return items.undo(tx, change)


@router.read("/teams/{team}/unconfirmed", 404)
def list_unconfirmed(tx: Tx, team: str) -> list[UnconfirmedView]:
    """List what no person has confirmed: first what waits for a decision, then what was learned
    from untrusted text and is used with that mark."""
    team_id = teams.find(tx, team).id
    found = (*items.pending(tx, team_id), *items.unverified(tx, team_id))
    return [UnconfirmedView.of(item, sources=item.label.sources) for item in found]


@router.write("POST", "/knowledge/{item}/confirm", 404, 409)
def confirm_knowledge(tx: Tx, item: str, person: PersonDep) -> Insight | Memory | Note:
    """Confirm the exact words of an unverified or pending item. It is then known without a mark."""
    return items.confirm(tx, item, author=person)


@router.write("POST", "/knowledge/{item}/reject", 404, 409)
def reject_knowledge(tx: Tx, item: str, person: PersonDep) -> Insight | Memory | Note:
    """Remove an unverified or pending item; work alone does not bring it back."""
    return items.reject(tx, item, author=person)


@search_router.post("/teams/{team}/memory/search", responses=documented(404))
async def search_memory(team: str, body: SearchRequest, api: ApiDep) -> list[SearchHitView]:
    """Search a team's notes, insights, web pages and reports; whole sections, best first."""

    def coordinator(tx: Tx) -> Agent:
        return teams.coordinator(tx, teams.find(tx, team).id)

    agent = await api.store.read(coordinator)
    files = await asyncio.to_thread(_files, api, agent)
    if await api.store.read(notes.is_stale, agent, files):  # a person edited a note
        await api.store.write_first(notes.index, agent, files)
    found: list[Passage] = await api.store.read(
        passages.find, body.query, team_id=agent.team_id, owner=agent.id, limit=body.limit
    )
    return [SearchHitView.of(hit, sources=hit.label.sources) for hit in found]


def _files(api: Api, agent: Agent) -> dict[str, str]:
    folder = api.home.team(agent.team_id)
    scope = Scope(role=agent.role, agent=agent.name, node=NodeId("none"), team=folder)
    kept = Notes(scope)
    return {kept.full(name): text for name, text in kept.files().items()}


@search_router.read("/teams/{team}/memory/page", 404)
def get_page_text(
    tx: Tx, team: str, url: Annotated[str, Query(min_length=1, max_length=4000)]
) -> PageTextView:
    """Return the text of a web page that agents of a team have read, by its URL."""
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
