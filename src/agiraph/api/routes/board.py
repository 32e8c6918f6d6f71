"""Board routes: a team's nodes and stages, and one node in detail."""

import asyncio
from typing import ClassVar

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.deps import After, Api, ApiDep, Idempotent, Limit, PersonDep
from agiraph.api.effort_choice import EffortRequest, chosen_effort
from agiraph.api.job_views import JobView
from agiraph.api.presenters import job_view, node_view, stage_view
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.views import FileView, NodeDetail, NodeView, StageView
from agiraph.domain.errors import Refused
from agiraph.domain.ids import NodeId
from agiraph.domain.work import Extension, WorkNode
from agiraph.services.board import jobs
from agiraph.services.lifecycle import continuations, endings, settings
from agiraph.store import nodes, stages, teams
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

router: APIRouter = api_router("board")

FILES_SHOWN = 500


class ExtensionRequest(BaseModel):
    """How much more of each limit a node is given. At least one amount is needed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"turns": 50, "usd": 1}}
    )

    turns: int | None = Field(default=None, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=1, le=10**12)
    usd: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)
    seconds: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)

    def extension(self) -> Extension:
        return Extension(
            turns=self.turns or 0,
            tokens=self.tokens or 0,
            usd=self.usd or 0.0,
            seconds=self.seconds or 0.0,
        )


@router.get("/teams/{team}/board", responses=documented(404))
async def get_board(
    team: str, api: ApiDep, after: After = "", limit: Limit = 500
) -> list[NodeView]:
    """List the nodes of a team in the order of creation."""

    def look(tx: Tx) -> list[NodeView]:
        found = teams.find(tx, team)
        return [node_view(tx, n) for n in nodes.board(tx, found.id, after=after, limit=limit)]

    return await api.store.read(look)


@router.get("/teams/{team}/jobs", responses=documented(404))
async def list_jobs(team: str, api: ApiDep) -> list[JobView]:
    """List work with its progress: what runs, waits and is queued, then what ended last."""

    def look(tx: Tx) -> list[JobView]:
        return [job_view(job) for job in jobs.of_team(tx, teams.find(tx, team).id)]

    return await api.store.read(look)


@router.get("/teams/{team}/stages", responses=documented(404))
async def list_stages(team: str, api: ApiDep) -> list[StageView]:
    """List the stages of a team."""

    def look(tx: Tx) -> list[StageView]:
        found = teams.find(tx, team)
        return [stage_view(tx, stage) for stage in stages.of_team(tx, found.id)]

    return await api.store.read(look)


@router.get("/nodes/{node}", responses=documented(404))
async def get_node(node: str, api: ApiDep) -> NodeDetail:
    """Return one node with its task, dependencies, files, attempts and cost."""

    def look(tx: Tx) -> tuple[WorkNode, NodeView, list[str]]:
        found = NODES.get(tx, node)
        return found, node_view(tx, found), [c.id for c in nodes.children(tx, found.id)]

    found, view, children = await api.store.read(look)
    return NodeDetail(
        **view.model_dump(),
        refs=found.refs,
        acceptance=list(found.acceptance),
        acceptance_kinds=found.line_kinds,
        if_unmet=found.if_unmet,
        budget=found.budget,
        manifest=found.manifest,
        files=await asyncio.to_thread(_files, api, found),
        children=children,
        started=found.attempt,
    )


def _files(api: Api, node: WorkNode) -> list[FileView]:
    """Return the files in a node's folder, at most `FILES_SHOWN`."""
    with api.home.team(node.team_id).folder as folder:
        home = f"nodes/{node.id}"
        try:
            found = folder.sub(home).walk(limit=FILES_SHOWN)
        # The folder is missing or has too many files to list; the node itself is still worth
        # showing.
        except Refused:
            return []
        return [
            FileView(path=f"{home}/{e.name}", kind=e.kind, size=e.size, modified=e.modified)
            for e in found
        ]


@router.patch("/nodes/{node}", responses=documented(404, 409))
async def change_node(node: str, body: EffortRequest, api: ApiDep) -> NodeView:
    """Change how much the model thinks that works on a node."""

    def change(tx: Tx) -> NodeView:
        effort = chosen_effort(body.effort)
        return node_view(tx, settings.set_effort_of_node(tx, NodeId(node), effort))

    return await api.store.write(change)


@router.post("/nodes/{node}/cancel", status_code=204, responses=documented(404, 409))
async def cancel_node(node: str, api: ApiDep) -> Response:
    """Cancel a node and all nodes below it. With a goal, the team's own heartbeat rests."""
    await api.store.write(lambda tx: endings.stop(tx, NodeId(NODES.get(tx, node).id)))
    return Response(status_code=204)


@router.post("/nodes/{node}/retry", responses=documented(404, 409))
async def retry_node(node: str, api: ApiDep) -> NodeView:
    """Retry a failed or partial node; its thread continues where it ended.

    Each limit that was exhausted is raised by its original amount.
    """
    return await api.store.write(lambda tx: node_view(tx, continuations.retry(tx, NodeId(node))))


@router.post("/nodes/{node}/extend", responses=documented(404, 409))
async def extend_node(
    node: str, body: ExtensionRequest, person: PersonDep, idempotently: Idempotent
) -> NodeView:
    """Raise a node's limits by these amounts.

    A partial node, and one that failed by a limit, goes on in its thread; a team whose goal it was
    works again. An open node goes on with the new limits.
    """
    more = body.extension()

    def raise_limits(tx: Tx) -> NodeView:
        return node_view(tx, continuations.extend_for_person(tx, NodeId(node), more, by=person))

    return await idempotently(raise_limits, status=200)  # pyright: ignore[reportReturnType]
