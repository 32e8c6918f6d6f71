"""Knowledge routes: agents' memories and insights, and the history of their changes."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from agiraph.api.deps import After, ApiDep, Idempotent, Limit, PersonDep
from agiraph.api.knowledge_views import UnconfirmedView
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.errors import Refused
from agiraph.domain.ids import AgentId
from agiraph.domain.knowledge import Change, Insight, InsightType, Memory
from agiraph.domain.notes import Note
from agiraph.services.knowledge import items
from agiraph.store import knowledge as rows
from agiraph.store import teams
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx

router: APIRouter = api_router("knowledge")


def _is_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write a time as text, such as 2026-05-01T09:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_is_text), Field(strict=False)]


class NewMemory(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"content": "Likes figures before words."}},
    )

    content: str = Field(min_length=1, max_length=items.MAX_CHARS)
    valid_until: Moment | None = None


class NewInsight(NewMemory):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"type": "fact", "content": "Prices fall in May."}}
    )

    type: InsightType
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


@router.get("/agents/{agent}/memories", responses=documented(404))
async def list_memories(agent: str, api: ApiDep, limit: Limit = 100) -> list[Memory]:
    """List what an agent remembers about the person."""
    return await api.store.read(
        lambda tx: items.memories(tx, AgentId(AGENTS.get(tx, agent).id), limit=limit)
    )


@router.post("/agents/{agent}/memories", status_code=201, responses=documented(404, 409))
async def add_memory(
    agent: str, body: NewMemory, person: PersonDep, idempotently: Idempotent
) -> Memory:
    """Add a memory about the person."""

    def add(tx: Tx) -> Memory:
        found = AGENTS.get(tx, agent)
        return items.remember(tx, found, body.content, author=person, valid_until=body.valid_until)

    return await idempotently(add, status=201)  # pyright: ignore[reportReturnType]


@router.delete("/agents/{agent}/memories/{memory}", status_code=204, responses=documented(404))
async def forget_memory(agent: str, memory: str, api: ApiDep, person: PersonDep) -> Response:
    """Remove a memory; this can be undone."""
    await api.store.write(
        lambda tx: items.forget(tx, AgentId(AGENTS.get(tx, agent).id), memory, author=person)
    )
    return Response(status_code=204)


@router.get("/agents/{agent}/insights", responses=documented(404))
async def list_insights(
    agent: str,
    api: ApiDep,
    query: Annotated[str, Query(max_length=500)] = "",
    type: InsightType | None = None,
    limit: Limit = 100,
) -> list[Insight]:
    """List what an agent has learned for its work."""

    def look(tx: Tx) -> list[Insight]:
        found = AGENTS.get(tx, agent)
        return items.insights(tx, found.id, query=query, type=type, limit=limit)

    return await api.store.read(look)


@router.post("/agents/{agent}/insights", status_code=201, responses=documented(404, 409))
async def add_insight(
    agent: str, body: NewInsight, person: PersonDep, idempotently: Idempotent
) -> Insight:
    """Add an insight to an agent's knowledge."""

    def add(tx: Tx) -> Insight:
        return items.learn(
            tx,
            AGENTS.get(tx, agent),
            body.type,
            body.content,
            author=person,
            confidence=body.confidence,
            valid_until=body.valid_until,
        )

    return await idempotently(add, status=201)  # pyright: ignore[reportReturnType]


@router.delete("/agents/{agent}/insights/{insight}", status_code=204, responses=documented(404))
async def remove_insight(agent: str, insight: str, api: ApiDep, person: PersonDep) -> Response:
    """Remove an insight; this can be undone."""
    await api.store.write(
        lambda tx: items.remove(tx, AgentId(AGENTS.get(tx, agent).id), insight, author=person)
    )
    return Response(status_code=204)


@router.get("/agents/{agent}/changes", responses=documented(404))
async def list_changes(
    agent: str,
    api: ApiDep,
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

    def look(tx: Tx) -> list[Change]:
        found = AGENTS.get(tx, agent).id
        if after:
            return rows.changes(tx, found, after=after, limit=limit)
        return rows.lately(tx, found, before=before, limit=limit)

    return await api.store.read(look)


@router.post("/changes/{change}/undo", responses=documented(404, 409))
async def undo_change(change: str, api: ApiDep) -> Change:
    """Undo a change."""
    return await api.store.write(items.undo, change)


@router.get("/teams/{team}/unconfirmed", responses=documented(404))
async def list_unconfirmed(team: str, api: ApiDep) -> list[UnconfirmedView]:
    """List what no person has confirmed: first what waits for a decision, then what was learned
    from untrusted text and is used with that mark."""

    def look(tx: Tx) -> list[UnconfirmedView]:
        team_id = teams.find(tx, team).id
        found = (*items.pending(tx, team_id), *items.unverified(tx, team_id))
        return [_as_view(item) for item in found]

    return await api.store.read(look)


def _as_view(item: items.Unconfirmed) -> UnconfirmedView:
    return UnconfirmedView(
        id=item.id,
        agent_id=item.agent_id,
        kind=item.kind,
        text=item.text,
        status=item.status,
        sources=list(item.label.sources),
        learned_from=list(item.learned_from),
        created_at=item.created_at,
    )


@router.post("/knowledge/{item}/confirm", responses=documented(404, 409))
async def confirm_knowledge(item: str, api: ApiDep, person: PersonDep) -> Insight | Memory | Note:
    """Confirm the exact words of an unverified or pending item. It is then known without a mark."""
    return await api.store.write(items.confirm, item, author=person)


@router.post("/knowledge/{item}/reject", responses=documented(404, 409))
async def reject_knowledge(item: str, api: ApiDep, person: PersonDep) -> Insight | Memory | Note:
    """Remove an unverified or pending item; work alone does not bring it back."""
    return await api.store.write(items.reject, item, author=person)
