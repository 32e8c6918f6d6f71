"""Teams: founding them, looking at them, and stopping, pausing and redirecting their work."""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.deps import After, Api, Limit, Once, TheApi
from agiraph.api.presenters import team_view
from agiraph.api.problems import documented
from agiraph.api.views import TeamView
from agiraph.domain.agents import Limits, Mode, Rule
from agiraph.domain.work import Budget
from agiraph.services.lifecycle import teams as verbs
from agiraph.store import teams
from agiraph.store.tx import Tx

router = APIRouter(tags=["teams"])


class BudgetBody(BaseModel):
    """What the work towards the goal may cost; what is not said has no limit of its own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    turns: int = Field(default=Budget().turns, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    model_calls: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)

    def budget(self) -> Budget:
        return Budget(**self.model_dump())


class RuleBody(BaseModel):
    """The first rule that matches a call decides whether it may be made."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=200, examples=["bash"])
    action: Literal["allow", "deny", "ask"]
    pattern: str = Field(default="*", max_length=2000)


class NewTeam(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"goal": "Compare three vector databases", "budget": {"usd": 2}}
        },
    )

    goal: str = Field(min_length=1, max_length=verbs.GOAL_LIMIT)
    name: str = Field(default="", max_length=200)
    mode: Mode = "finite"
    model: str = Field(default="", max_length=500, examples=["anthropic/claude-sonnet-4-5"])
    soul: str = Field(default="", max_length=100_000, description="Who the team is: its SOUL.md.")
    budget: BudgetBody | None = None
    tools: list[str] = Field(default_factory=list[str], max_length=200)
    workers: int | None = Field(
        default=None, ge=1, le=200, description="How many members it may have at a time."
    )
    permissions: list[RuleBody] = Field(default_factory=list[RuleBody], max_length=200)
    learns: bool = True
    start: bool = Field(default=True, description="Whether to get to work at once.")


class NewGoal(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"goal": "Now compare their prices, too"}},
    )

    goal: str = Field(min_length=1, max_length=verbs.GOAL_LIMIT)
    budget: BudgetBody | None = None


@router.post("/teams", status_code=201, responses=documented(409))
async def create_team(body: NewTeam, api: TheApi, once: Once) -> TeamView:
    """Found a team: a coordinator that gets to work on the goal, unless `start` is false."""
    api.check_model(body.model or api.model)

    def found(tx: Tx) -> TeamView:
        founded = verbs.create(
            tx,
            goal=body.goal,
            name=body.name,
            mode=body.mode,
            model=body.model or api.model,
            budget=None if body.budget is None else body.budget.budget(),
            permissions=tuple(Rule(**rule.model_dump()) for rule in body.permissions),
            tools=tuple(body.tools),
            limits=None if body.workers is None else Limits(agents=body.workers),
            learns=body.learns,
            soul=body.soul,
            start=body.start,
        )
        return team_view(tx, founded.team)

    return await once(found, status=201)  # pyright: ignore[reportReturnType]


@router.get("/teams", responses=documented())
async def list_teams(api: TheApi, after: After = "", limit: Limit = 100) -> list[TeamView]:
    """Every team, oldest first."""

    def look(tx: Tx) -> list[TeamView]:
        return [team_view(tx, team) for team in teams.page(tx, after=after, limit=limit)]

    return await api.store.read(look)


@router.get("/teams/{team}", responses=documented(404))
async def get_team(team: str, api: TheApi) -> TeamView:
    """One team, by its id or name."""
    return await api.store.read(lambda tx: team_view(tx, teams.find(tx, team)))


@router.delete("/teams/{team}", status_code=204, responses=documented(404))
async def archive_team(team: str, api: TheApi) -> Response:
    """Stop a team and put it away. Nothing of it is deleted."""
    await api.store.write(lambda tx: verbs.archive(tx, teams.find(tx, team).id))
    return Response(status_code=204)


async def _switched(api: Api, team: str, verb: str) -> TeamView:
    def switch(tx: Tx) -> TeamView:
        return team_view(tx, getattr(verbs, verb)(tx, teams.find(tx, team).id))

    return await api.store.write(switch)


@router.post("/teams/{team}/pause", responses=documented(404, 409))
async def pause_team(team: str, api: TheApi) -> TeamView:
    """Let everyone stop at their next yield point. Nothing is lost; people are still answered."""
    return await _switched(api, team, "pause")


@router.post("/teams/{team}/resume", responses=documented(404, 409))
async def resume_team(team: str, api: TheApi) -> TeamView:
    """Go on where the team was paused."""
    return await _switched(api, team, "resume")


@router.post("/teams/{team}/stop", responses=documented(404, 409))
async def stop_team(team: str, api: TheApi) -> TeamView:
    """Cancel everything of a team that is not done, and end its processes."""
    return await _switched(api, team, "stop")


@router.post("/teams/{team}/goal", status_code=201, responses=documented(404, 409))
async def set_goal(team: str, body: NewGoal, api: TheApi, once: Once) -> TeamView:
    """A new goal for the same team: a new run; what it remembers stays."""

    def aim(tx: Tx) -> TeamView:
        budget = None if body.budget is None else body.budget.budget()
        found = teams.find(tx, team)
        return team_view(tx, verbs.set_goal(tx, found.id, body.goal, budget=budget))

    return await once(aim, status=201)  # pyright: ignore[reportReturnType]
