"""Board routes: a team's nodes and stages, one node in detail, and what work has cost."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from agiraph.api.deps import After, Api, ApiDep, Limit, PersonDep, Query
from agiraph.api.presenters import job_view, node_view, node_views, stage_view
from agiraph.api.problems import documented
from agiraph.api.requests import NO_EFFORT, ChangedBudget, EffortChange, chosen_effort
from agiraph.api.routing import Body, Router
from agiraph.api.views import FileView, JobView, NodeDetail, NodeView, StageView
from agiraph.core.domain.costs import (
    CostHistory,
    CostLine,
    CostsBy,
    CostSum,
    DayCosts,
    NodeCosts,
    TeamCosts,
    add_up,
    as_trees,
)
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import Extension, WorkNode
from agiraph.core.services.board import jobs, texts
from agiraph.core.services.lifecycle import (
    continuations,
    endings,
    overspending,
    restarts,
    settings,
)
from agiraph.core.store import nodes, spend, stages, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

PAGE = 200
"""The nodes of a page, if no other number is asked for."""


def costs_of_team(tx: Tx, team_id: TeamId, *, after: str = "", limit: int = PAGE) -> TeamCosts:
    """Return a page of a team's costs: the first one with the sums of the whole team, and the
    budget."""
    found = nodes.costed(tx, team_id, after=after, limit=limit + 1)
    page = found[:limit]
    lines: Mapping[str, list[CostLine]] = (
        spend.of_nodes(tx, team_id, page[0].id, page[-1].id) if page else {}
    )
    costs = TeamCosts(
        team_id=team_id,
        runs=as_trees(
            NodeCosts(
                node_id=node.id,
                above_id=node.above_id,
                title=texts.subject_of(node),
                lane=node.lane,
                agent_id=node.assignee_id,
                agent=node.assignee,
                lines=lines.get(node.id, []),
            )
            for node in page
        ),
        next=page[-1].id if len(found) > limit else None,
    )
    return costs if after else _with_sums(tx, costs)


def _with_sums(tx: Tx, costs: TeamCosts) -> TeamCosts:
    goal = nodes.last_goal(tx, costs.team_id)
    groups = spend.by_agent(tx, costs.team_id, None if goal is None else goal.id)
    spent = spend.of_goal(groups)
    return replace(
        costs,
        total=add_up(group.sum for group in groups),
        by_agent=_costs_by((group.agent, group.sum) for group in groups),
        by_purpose=_costs_by((group.purpose, group.sum) for group in groups),
        by_model=_costs_by((group.model, group.sum) for group in groups),
        budget=None if goal is None else continuations.budget_of(tx, goal, spent),
    )


def _costs_by(sums: Iterable[tuple[str, CostSum]]) -> dict[str, CostSum]:
    groups: defaultdict[str, list[CostSum]] = defaultdict(list)
    for name, each in sums:
        groups[name].append(each)
    return {name: add_up(group) for name, group in sorted(groups.items())}


router: Router = Router("board")
cost_router: Router = Router("costs")

FILES_SHOWN = 500


class EffortRequest(Body, example={"effort": "high"}):
    """How much a model thinks. It counts from the next start or wake-up of the work on."""

    effort: EffortChange = Field(description="How much the model thinks first." + NO_EFFORT)


class ExtensionRequest(ChangedBudget, example={"turns": 50, "usd": 1}):
    """How much more of each limit a node is given. At least one amount is needed."""


@router.read("/teams/{team}/board", 404)
def get_board(tx: Tx, team: str, after: After = "", limit: Limit = 500) -> list[NodeView]:
    """List the nodes of a team in the order of creation."""
    found = teams.find(tx, team)
    return node_views(tx, nodes.board(tx, found.id, after=after, limit=limit))


@router.read("/teams/{team}/jobs", 404)
def list_jobs(tx: Tx, team: str) -> list[JobView]:
    """List work with its progress: what runs, waits and is queued, then what ended last."""
    return [job_view(job) for job in jobs.of_team(tx, teams.find(tx, team).id)]


@router.read("/teams/{team}/stages", 404)
def list_stages(tx: Tx, team: str) -> list[StageView]:
    """List the stages of a team."""
    return [stage_view(tx, stage) for stage in stages.of_team(tx, teams.find(tx, team).id)]


@router.get("/nodes/{node}", responses=documented(404))
async def get_node(node: str, api: ApiDep) -> NodeDetail:
    """Return one node with its task, dependencies, files, attempts and cost."""

    def look(tx: Tx) -> tuple[WorkNode, NodeView, list[str]]:
        found = NODES.get(tx, node)
        return found, node_view(tx, found), [c.id for c in nodes.children(tx, found.id)]

    found, view, children = await api.store.read(look)
    return NodeDetail.of(
        found,
        **view.model_dump(),
        acceptance_kinds=found.line_kinds,
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
        return [FileView.of(e, path=f"{home}/{e.name}") for e in found]


@router.write("PATCH", "/nodes/{node}", 404, 409)
def change_node(tx: Tx, node: str, body: EffortRequest) -> NodeView:
    """Change how much the model thinks that works on a node."""
    effort = chosen_effort(body.effort)
    return node_view(tx, settings.set_effort_of_node(tx, NodeId(node), effort))


@router.write("POST", "/nodes/{node}/cancel", 404, 409, status=204)
def cancel_node(tx: Tx, node: str, person: PersonDep) -> None:
    """Cancel a node and all nodes below it. With a goal, the team's own heartbeat rests."""
    endings.stop(tx, NodeId(NODES.get(tx, node).id), by=person)


@router.write("POST", "/nodes/{node}/retry", 404, 409)
def retry_node(tx: Tx, node: str, person: PersonDep) -> NodeView:
    """Start a cancelled, failed or partial node again; its thread continues where it ended.

    What was cancelled with it below it goes on too. Each limit that was exhausted is raised by its
    original amount.
    """
    return node_view(tx, restarts.start(tx, NodeId(node), by=person))


@router.write_once("/nodes/{node}/extend", 404, 409)
def extend_node(tx: Tx, node: str, body: ExtensionRequest, person: PersonDep) -> NodeView:
    """Raise a node's limits by these amounts.

    A partial node, and one that failed by a limit, goes on in its thread; a team whose goal it was
    works again. An open node goes on with the new limits.
    """
    more = Extension(**body.model_dump(exclude_none=True))
    return node_view(tx, continuations.extend_for_person(tx, NodeId(node), more, by=person))


@cost_router.read("/teams/{team}/cost", 404)
def get_cost(tx: Tx, team: str, after: After = "", limit: Limit = PAGE) -> TeamCosts:
    """Return a page of what a team's nodes have cost; the first with the sums by agent, purpose and
    model, and the budget."""
    return costs_of_team(tx, teams.find(tx, team).id, after=after, limit=limit)


@cost_router.get("/cost/history", responses=documented(404))
async def get_history(
    api: ApiDep,
    by: Annotated[CostsBy, Query(description="What each day is split by.")] = "model",
    team: Annotated[str, Query(max_length=200, description="Only this team.")] = "",
    days: Annotated[int, Query(ge=1, le=366, description="How many days, with today.")] = 30,
) -> CostHistory:
    """Return what was spent on each of the last days (UTC), by team, agent, model or purpose."""

    def read(tx: Tx) -> CostHistory:
        team_id = teams.find(tx, team).id if team else None
        return overspending.history(tx, by, api.usd_per_day, days=days, team_id=team_id)

    return await api.store.read(read)


@cost_router.get("/cost", responses=documented())
async def get_day(api: ApiDep) -> DayCosts:
    """Return what all teams have spent today (UTC), and the daily limit."""
    return await api.store.read(overspending.costs_of_day, api.usd_per_day)
