"""Team routes: create, list, pause, resume, stop, archive and redirect teams."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, cast

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.access_control import Caller
from agiraph.api.deps import (
    After,
    Api,
    ApiDep,
    CallerDep,
    Idempotent,
    Limit,
    PersonDep,
    check_owner,
)
from agiraph.api.effort_choice import NO_EFFORT, EffortChange, chosen_effort
from agiraph.api.presenters import team_view
from agiraph.api.problems import documented
from agiraph.api.views import TeamView
from agiraph.domain.agents import Limits, Mode, Review, Rule, Trust
from agiraph.domain.effort import Effort
from agiraph.domain.folders import MOST_FOLDERS, GivenFolder
from agiraph.domain.ids import PersonId, TeamId
from agiraph.domain.work import GOAL_TURNS, Budget
from agiraph.home import given_folders
from agiraph.services.board import budgets
from agiraph.services.board.acceptance_lines import LINE_CHARACTERS, MAX_LINES
from agiraph.services.lifecycle import settings
from agiraph.services.lifecycle import teams as verbs
from agiraph.services.lifecycle.settings import Settings
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = APIRouter(tags=["teams"])


class BudgetRequest(BaseModel):
    """Limits for the work on the goal.

    Without `seconds` a finite goal has 24 hours; without `tokens`, one whose model has no known
    price has 5 million. Other fields that are not set have no limit.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    turns: int = Field(default=GOAL_TURNS, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    model_calls: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)

    def budget(self) -> Budget:
        return Budget(**self.model_dump())


class PermissionRule(BaseModel):
    """A permission rule. The first rule that matches a tool call decides on it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    tool: str = Field(min_length=1, max_length=200, examples=["bash"])
    action: Literal["allow", "deny", "ask"]
    pattern: str = Field(default="*", max_length=2000)


MAX_INTERVAL_S = 366 * 86_400
INTERVAL = (
    "Seconds without work after which the coordinator wakes by itself; at least 60, or 0 for never."
)
TRUST = (
    "What the team may do by itself in threads that hold words from outside: `strict` asks before "
    "almost every way out, `standard` lets it search and read with limits, and `open` is for "
    "throw-away homes and containers."
)
REVIEW = (
    "When a reviewer judges a result before it counts: `auto` if acceptance lines cannot be "
    "checked by machine."
)
QUIET_HOURS = "When no briefing is sent to channels, such as 22:00-07:00; empty: never."
QUIET_ZONE = "The time zone of the quiet hours, such as Europe/Berlin."
CHANNEL = (
    "The channel for the team's questions and approvals; empty: each that sends such messages."
)
ANSWER_WITHIN = (
    "Seconds that agents wait for a person's answer before they go on without it; at least 60, or "
    "0 for ever."
)
EFFORT = "How much the models of the team think, unless an agent or a node says otherwise."
FOLDERS = (
    "Folders of this machine that the team sees, as PATH, PATH:ro or PATH:rw: to read, or to read "
    "and change. Giving one needs the scope `admin`."
)
Folders = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(max_length=MOST_FOLDERS)
]
Acceptance = Annotated[
    list[Annotated[str, Field(max_length=LINE_CHARACTERS)]], Field(max_length=MAX_LINES)
]
ACCEPTANCE = (
    "What must be true when the goal is reached, one statement each. A file in backticks must be "
    "published; `answer` means that any answer is enough. Agents can add lines, not change these."
)


class NewTeam(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
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
    soul: str = Field(
        default="",
        max_length=100_000,
        description="The team's identity: the content of its SOUL.md.",
    )
    budget: BudgetRequest | None = None
    tools: list[str] = Field(default_factory=list[str], max_length=200)
    workers: int | None = Field(
        default=None, ge=1, le=200, description="The most members at a time."
    )
    permissions: list[PermissionRule] = Field(default_factory=list[PermissionRule], max_length=200)
    learns: bool = True
    start: bool = Field(default=True, description="Whether to start working immediately.")
    interval: float = Field(default=verbs.HOUR, ge=0, le=MAX_INTERVAL_S, description=INTERVAL)
    review: Review = Field(default="auto", description=REVIEW)
    trust: Trust = Field(default="standard", description=TRUST)
    folders: Folders = Field(default_factory=list[str], description=FOLDERS)
    effort: Effort | None = Field(default=None, description=EFFORT)
    acceptance: Acceptance = Field(default_factory=list[str], description=ACCEPTANCE)


class LimitsRequest(BaseModel):
    """How far a team may grow. A field that is not set stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    depth: int | None = Field(default=None, ge=0, le=20)
    children: int | None = Field(default=None, ge=1, le=1000)
    agents: int | None = Field(default=None, ge=1, le=200)
    hires_per_minute: int | None = Field(default=None, ge=1, le=1000)
    nodes: int | None = Field(default=None, ge=1, le=100_000)


class RaisedBudget(BaseModel):
    """New limits of the team's goal, in total. A field that is not set stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    turns: int | None = Field(default=None, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=1, le=10**12)
    usd: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)
    seconds: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)


class TeamChanges(BaseModel):
    """Settings of a team. A field that is not set stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"mode": "infinite", "interval": 3600}},
    )

    name: str | None = Field(default=None, max_length=200)
    soul: str | None = Field(
        default=None, max_length=100_000, description="The new content of the team's SOUL.md."
    )
    model: str | None = Field(
        default=None, min_length=1, max_length=500, description="The coordinator's model."
    )
    mode: Mode | None = None
    interval: float | None = Field(default=None, ge=0, le=MAX_INTERVAL_S, description=INTERVAL)
    review: Review | None = Field(default=None, description=REVIEW)
    trust: Trust | None = Field(default=None, description=TRUST)
    folders: Folders | None = Field(
        default=None, description=FOLDERS + " The list replaces the old one."
    )
    effort: EffortChange | None = Field(default=None, description=EFFORT + NO_EFFORT)
    quiet_hours: str | None = Field(default=None, max_length=20, description=QUIET_HOURS)
    quiet_zone: str | None = Field(default=None, max_length=100, description=QUIET_ZONE)
    channel: str | None = Field(default=None, max_length=200, description=CHANNEL)
    answer_within: float | None = Field(
        default=None, ge=0, le=MAX_INTERVAL_S, allow_inf_nan=False, description=ANSWER_WITHIN
    )
    limits: LimitsRequest | None = None
    budget: RaisedBudget | None = Field(
        default=None,
        description="Limits of the team's goal in total. They can be raised, not lowered; a goal "
        "that such a limit has ended goes on.",
    )

    def settings(self) -> Settings:
        """Return the fields that are set, as the verb takes them."""
        given = self.model_dump(exclude_none=True, exclude={"folders"})
        for name in ("interval", "answer_within"):
            if name in given:
                given[f"{name}_s"] = given.pop(name)
        if self.effort is not None:
            given["effort"] = chosen_effort(self.effort)
        return cast(Settings, given)


class NewGoal(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"goal": "Now compare their prices, too"}},
    )

    goal: str = Field(min_length=1, max_length=verbs.GOAL_LIMIT)
    budget: BudgetRequest | None = None
    acceptance: Acceptance = Field(default_factory=list[str], description=ACCEPTANCE)


@router.post("/teams", status_code=201, responses=documented(409))
async def create_team(
    body: NewTeam, api: ApiDep, caller: CallerDep, person: PersonDep, idempotently: Idempotent
) -> TeamView:
    """Create a team. Its coordinator starts working on the goal, unless `start` is false."""
    if body.trust == "open":
        check_owner(caller, "To create an open team")
    folders = await _given_folders(body.folders, api, caller) if body.folders else ()
    await api.models.learn(body.model or api.model)
    api.check_model(body.model or api.model)
    settings.check_interval(body.interval)
    chosen = None if body.budget is None else body.budget.budget()
    is_priced = api.is_priced(body.model or api.model)
    budget = budgets.for_goal(chosen, mode=body.mode, is_priced=is_priced)

    def found(tx: Tx) -> TeamView:
        founded = verbs.create(
            tx,
            owner_id=person,
            goal=body.goal,
            name=body.name,
            mode=body.mode,
            model=body.model or api.model,
            budget=budget,
            permissions=tuple(Rule(**rule.model_dump()) for rule in body.permissions),
            tools=tuple(body.tools),
            limits=None if body.workers is None else Limits(agents=body.workers),
            learns=body.learns,
            soul=body.soul,
            start=body.start,
            acceptance=body.acceptance,
            heartbeat=body.interval,
            review=body.review,
            trust=body.trust,
            folders=folders,
            effort=body.effort,
        )
        return team_view(tx, founded.team, person)

    return await idempotently(found, status=201)  # pyright: ignore[reportReturnType]


async def _given_folders(
    folders: Sequence[str], api: Api, caller: Caller
) -> tuple[GivenFolder, ...]:
    """Return the folders that the caller gives to a team, once they are found to be fit for it."""
    check_owner(caller, "To give a team a folder of this machine")
    return await asyncio.to_thread(given_folders.check, api.home.path, folders, api.folders)


@router.get("/teams", responses=documented())
async def list_teams(
    api: ApiDep, person: PersonDep, after: After = "", limit: Limit = 100
) -> list[TeamView]:
    """List all teams, oldest first."""

    def look(tx: Tx) -> list[TeamView]:
        return [team_view(tx, team, person) for team in teams.page(tx, after=after, limit=limit)]

    return await api.store.read(look)


@router.get("/teams/{team}", responses=documented(404))
async def get_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Return one team by its id or name."""
    return await api.store.read(lambda tx: team_view(tx, teams.find(tx, team), person))


@router.patch("/teams/{team}", responses=documented(404, 409))
async def change_team(
    team: str, body: TeamChanges, api: ApiDep, caller: CallerDep, person: PersonDep
) -> TeamView:
    """Change a team's settings. A completed team that becomes infinite starts to work again.

    Its trust and its folders can be changed only with the scope `admin`.
    """
    if body.trust is not None:
        check_owner(caller, "To change the trust of a team")
    if body.model is not None:
        await api.models.learn(body.model)
        api.check_model(body.model)

    changes = body.settings()
    if body.folders is not None:
        changes["folders"] = await _given_folders(body.folders, api, caller)

    def change(tx: Tx) -> TeamView:
        found = teams.find(tx, team)
        return team_view(tx, settings.change(tx, found.id, by=person, **changes), person)

    changed = await api.store.write(change)
    if body.soul is not None:
        # After the commit, which refuses an archived team. If the process dies here, the client
        # gets no response and sends the change again.
        folder = api.home.team(TeamId(changed.id))
        await asyncio.to_thread(folder.write_soul, body.soul)
    return changed


@router.delete("/teams/{team}", status_code=204, responses=documented(404))
async def archive_team(team: str, api: ApiDep) -> Response:
    """Stop and archive a team. Nothing is deleted."""
    await api.store.write(lambda tx: verbs.archive(tx, teams.find(tx, team).id))
    return Response(status_code=204)


async def _switched(api: Api, team: str, verb: str, viewer: PersonId) -> TeamView:
    def switch(tx: Tx) -> TeamView:
        return team_view(tx, getattr(verbs, verb)(tx, teams.find(tx, team).id), viewer)

    return await api.store.write(switch)


@router.post("/teams/{team}/pause", responses=documented(404, 409))
async def pause_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Pause a team: every agent stops at its next yield point. Messages are still answered."""
    return await _switched(api, team, "pause", person)


@router.post("/teams/{team}/resume", responses=documented(404, 409))
async def resume_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Resume a paused team where it stopped."""
    return await _switched(api, team, "resume", person)


@router.post("/teams/{team}/stop", responses=documented(404, 409))
async def stop_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Cancel a team's open work and end its processes."""
    return await _switched(api, team, "stop", person)


@router.post("/teams/{team}/goal", status_code=201, responses=documented(404, 409))
async def set_goal(
    team: str, body: NewGoal, api: ApiDep, person: PersonDep, idempotently: Idempotent
) -> TeamView:
    """Give a team a new goal, which starts a new run. What the team knows is kept."""

    def aim(tx: Tx) -> TeamView:
        found = teams.find(tx, team)
        chosen = None if body.budget is None else body.budget.budget()
        is_priced = api.is_priced(teams.coordinator(tx, found.id).model)
        budget = budgets.for_goal(chosen, mode=found.mode, is_priced=is_priced)
        aimed = verbs.set_goal(tx, found.id, body.goal, budget=budget, acceptance=body.acceptance)
        return team_view(tx, aimed, person)

    return await idempotently(aim, status=201)  # pyright: ignore[reportReturnType]
