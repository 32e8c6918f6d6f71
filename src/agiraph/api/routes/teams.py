"""Team routes: create, list, change, pause, stop, archive, export and delete teams."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request

from agiraph.api import kept_texts
from agiraph.api.access_control import IS_AUDITED, Caller
from agiraph.api.decision_views import MatchedCall, RuleMatches, RulesPreview
from agiraph.api.deps import (
    After,
    Api,
    ApiDep,
    CallerDep,
    Idempotent,
    Limit,
    PersonDep,
    Query,
    SaidByDep,
    check_owner,
)
from agiraph.api.presenters import team_view, team_views
from agiraph.api.problems import documented
from agiraph.api.requests import (
    NewGoal,
    NewTeam,
    PermissionRule,
    TeamChanges,
    lines_of,
    received,
)
from agiraph.api.routing import Body, Router
from agiraph.api.views import (
    DeletionView,
    MemberOverview,
    TeamOverview,
    TeamSettingsView,
    TeamView,
)
from agiraph.core.domain.agents import GivenFolder, Limits, Rule
from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.home import file_lock
from agiraph.core.home.layout import DEFAULT_SOUL, soul_text
from agiraph.core.services.board import budgets, labels
from agiraph.core.services.lifecycle import continuations, removal, restarts, settings
from agiraph.core.services.lifecycle import teams as verbs
from agiraph.core.store import teams
from agiraph.core.store.lists import overview, team_threads
from agiraph.core.store.tx import Tx
from agiraph.sandbox.folders import given_folders

router: Router = Router("teams")
MOST_CALLS = 500
"""Turns with calls that a preview of rules looks at."""
MOST_EXAMPLES = 5
ARGUMENT_CHARACTERS = 2000


class RulesRequest(Body, example={"rules": [{"tool": "bash", "action": "ask", "pattern": "rm *"}]}):
    """Permission rules to try, in order. Nothing is changed."""

    rules: list[PermissionRule] = Field(max_length=200)


class DeletionRequest(Body, example={"name": "Count the beans"}):
    """Says that a team is to be deleted for good."""

    name: str = Field(max_length=400, description="The team's name, exactly as it is.")
    stop: bool = Field(
        default=False, description="Whether to end its work; without it, a team at work is refused."
    )


@router.post("/teams", status_code=201, responses=documented(409))
async def create_team(
    body: NewTeam,
    api: ApiDep,
    caller: CallerDep,
    person: PersonDep,
    said_by: SaidByDep,
    idempotently: Idempotent,
) -> TeamView:
    """Create a team. Its coordinator starts working on the goal, unless `start` is false."""
    if body.trust == "open":
        check_owner(caller, "To create an open team")
    folders = await _given_folders(body.folders, api, caller) if body.folders else ()
    model = body.model or api.model
    await api.models.learn(model)
    api.check_model(model)
    await api.check_tools(body.tools, team=body.name)
    settings.check_interval(body.interval)
    chosen = None if body.budget is None else body.budget.budget()
    budget = budgets.for_goal(chosen, mode=body.mode, is_priced=api.is_priced(model))

    def found(tx: Tx) -> TeamView:
        founded = verbs.create(
            tx,
            owner_id=person,
            goal=body.goal,
            name=body.name,
            mode=body.mode,
            model=model,
            budget=budget,
            permissions=_rules(body.permissions),
            tools=tuple(body.tools),
            limits=None if body.workers is None else Limits(agents=body.workers),
            learns=body.learns,
            soul=body.soul,
            start=body.start,
            acceptance=lines_of(body.acceptance),
            attachments=received(body.attachments),
            heartbeat=body.interval,
            review=body.review,
            trust=body.trust,
            folders=folders,
            effort=body.effort,
            label=said_by,
        )
        return team_view(tx, founded.team, person)

    return await idempotently(found, status=201)  # pyright: ignore[reportReturnType]


def _rules(given: Sequence[PermissionRule]) -> tuple[Rule, ...]:
    return tuple(Rule(**rule.model_dump()) for rule in given)


async def _given_folders(
    folders: Sequence[str], api: Api, caller: Caller
) -> tuple[GivenFolder, ...]:
    """Return the folders that the caller gives to a team, once they are found to be fit for it."""
    check_owner(caller, "To give a team a folder of this machine")
    return await asyncio.to_thread(given_folders.check, api.home.path, folders, api.folders)


@router.read("/teams")
def list_teams(tx: Tx, person: PersonDep, after: After = "", limit: Limit = 100) -> list[TeamView]:
    """List all teams, oldest first."""
    return team_views(tx, teams.page(tx, after=after, limit=limit), person)


@router.read("/teams/{team}", 404)
def get_team(tx: Tx, team: str, person: PersonDep) -> TeamView:
    """Return one team by its id or name."""
    return team_view(tx, teams.find(tx, team), person)


@router.patch("/teams/{team}", responses=documented(404, 409))
async def change_team(
    team: str, body: TeamChanges, api: ApiDep, caller: CallerDep, person: PersonDep
) -> TeamView:
    """Change a team's settings. A completed team whose mode becomes `infinite` works again.

    Its trust, its permission rules and its folders can be changed only with the scope `admin`.
    """
    if body.trust is not None:
        check_owner(caller, "To change the trust of a team")
    if body.permissions is not None:
        check_owner(caller, "To change the permission rules of a team")
    if body.model is not None:
        await api.models.learn(body.model)
        api.check_model(body.model)

    changes = body.settings()
    if body.folders is not None:
        changes["folders"] = await _given_folders(body.folders, api, caller)

    def change(tx: Tx) -> TeamView:
        found = teams.find(tx, team)
        return team_view(tx, settings.change(tx, found.id, by=person, **changes), person)

    if body.soul is None:
        return await api.store.write_first(change)
    return await _with_soul(api, team, body.soul, change)


async def _with_soul(api: Api, team: str, soul: str, change: Callable[[Tx], TeamView]) -> TeamView:
    """Change a team, and write its SOUL.md; keep the text before the change and the new one."""
    found = await kept_texts.prepared(api, team)
    async with file_lock.hold(api.home, found.id):
        label = await api.store.read(labels.of_path, found.id, "SOUL.md")
        await kept_texts.keep_current(api, found, "SOUL.md", is_labelled=bool(label))
        changed = await api.store.write_first(change)
        # After the commit, which refuses an archived team. If the process dies here, the client
        # gets no response and sends the change again.
        await kept_texts.write(api, found, "SOUL.md", soul_text(soul), label)
    return changed


@router.write("DELETE", "/teams/{team}", 404, status=204)
def archive_team(tx: Tx, team: str, person: PersonDep) -> None:
    """Stop and archive a team. Nothing is deleted, and the team can be restored."""
    verbs.archive(tx, teams.find(tx, team).id, by=person)


@router.write("POST", "/teams/{team}/restore", 404)
def restore_team(tx: Tx, team: str, person: PersonDep) -> TeamView:
    """Take a team out of the archive. Work that the archiving cancelled stays cancelled."""
    return team_view(tx, verbs.restore(tx, teams.find(tx, team).id), person)


@router.write("POST", "/teams/{team}/pause", 404, 409)
def pause_team(tx: Tx, team: str, person: PersonDep) -> TeamView:
    """Pause a team: every agent stops at its next yield point. Messages are still answered."""
    return team_view(tx, verbs.pause(tx, teams.find(tx, team).id), person)


@router.write("POST", "/teams/{team}/resume", 404, 409)
def resume_team(tx: Tx, team: str, person: PersonDep) -> TeamView:
    """Let a paused team go on, or a stopped one with what was cancelled, where it stopped."""
    return team_view(tx, restarts.resume(tx, teams.find(tx, team).id, by=person), person)


@router.write("POST", "/teams/{team}/stop", 404, 409)
def stop_team(tx: Tx, team: str, person: PersonDep) -> TeamView:
    """Cancel a team's open work and end its processes."""
    return team_view(tx, verbs.stop(tx, teams.find(tx, team).id, by=person), person)


@router.post("/teams/{team}/goal", status_code=201, responses=documented(404, 409))
async def set_goal(
    team: str, body: NewGoal, api: ApiDep, person: PersonDep, idempotently: Idempotent
) -> TeamView:
    """Give a team a new goal, which starts a new run. What the team knows is kept, and so are the
    limits of its last goal that the new budget does not name."""

    def aim(tx: Tx) -> TeamView:
        found = teams.find(tx, team)
        chosen = {} if body.budget is None else body.budget.chosen()
        limits = budgets.for_next_goal(tx, found.id, chosen)
        is_priced = api.is_priced(teams.coordinator(tx, found.id).model)
        aimed = verbs.set_goal(
            tx,
            found.id,
            body.goal,
            budget=budgets.for_goal(limits, mode=found.mode, is_priced=is_priced),
            acceptance=lines_of(body.acceptance),
            attachments=received(body.attachments),
        )
        return team_view(tx, aimed, person)

    return await idempotently(aim, status=201)  # pyright: ignore[reportReturnType]


@router.get("/teams/{team}/settings", responses=documented(404))
async def get_settings(team: str, api: ApiDep, person: PersonDep) -> TeamSettingsView:
    """Return all settings of a team, with its budget and what is spent of it."""
    view = await api.store.read(_settings, team, person)
    soul = await asyncio.to_thread(api.home.soul, TeamId(view.team.id))
    return view.model_copy(update={"soul": soul, "is_default_soul": soul == DEFAULT_SOUL})


def _settings(tx: Tx, name: str, person: PersonId) -> TeamSettingsView:
    team = teams.find(tx, name)
    members = teams.members(tx, team.id)
    return TeamSettingsView.of(
        team,
        team=team_view(tx, team, person),
        soul="",
        is_default_soul=True,
        model=members[0].model if members else "",
        budget=continuations.goal_budget(tx, team.id),
    )


@router.read("/teams/{team}/permissions/preview", 404, method="POST")
def preview_permissions(tx: Tx, team: str, body: RulesRequest) -> RulesPreview:
    """Tell which of the team's newest tool calls these rules would have decided on.

    Paths are compared as the model wrote them. Nothing is changed.
    """
    found = teams.find(tx, team)
    names: dict[str, str] = {each.id: each.name for each in teams.everyone(tx, found.id)}
    calls = [
        MatchedCall(
            tool=str(call.get("name", "")),
            argument=_first_argument(call),
            agent=names.get(agent, agent),
            at=at,
        )
        for agent, at, made in team_threads.newest_calls(tx, found.id, limit=MOST_CALLS)
        for call in made
    ]
    return _preview(_rules(body.rules), calls)


def _preview(rules: Sequence[Rule], calls: Sequence[MatchedCall]) -> RulesPreview:
    # All tools are loaded only here and below: commands without a server load this module, too.
    from agiraph.core.policies.permission import first_match
    from agiraph.core.tools.toolsets import BUILT_IN

    matched: list[list[MatchedCall]] = [[] for _ in rules]
    for call in calls:
        tool = BUILT_IN.get(call.tool)
        spellings = [call.argument, call.argument.removeprefix("./").removeprefix("scratch/")]
        place = first_match(rules, tool, call.tool, spellings)
        if place is not None:
            matched[place].append(call)
    return RulesPreview(
        calls=len(calls),
        rules=[RuleMatches(count=len(each), examples=each[:MOST_EXAMPLES]) for each in matched],
        tools=sorted(BUILT_IN),
    )


def _first_argument(call: dict[str, Any]) -> str:
    """Return the argument that rules are compared with: the first of the tool's signature."""
    from agiraph.core.tools.toolsets import BUILT_IN

    arguments: dict[str, Any] = call.get("arguments") or {}
    tool = BUILT_IN.get(str(call.get("name", "")))
    order = [*(tool.arguments.model_fields if tool is not None else ()), *arguments]
    value = next((arguments[name] for name in order if name in arguments), "")
    return str(value).strip()[:ARGUMENT_CHARACTERS]


@router.post("/teams/{team}/delete", status_code=202, responses=documented(404, 409))
async def delete_team(
    team: str, body: DeletionRequest, api: ApiDep, caller: CallerDep, request: Request
) -> DeletionView:
    """Delete a team for good: its rows, files, search index and memories. Needs the scope `admin`.

    The team is gone at once; its data is removed in the background, also after a crash. The audit
    keeps one entry. A team that works is refused with 409 unless `stop` is true.
    """
    check_owner(caller, "To delete a team for good")

    def delete(tx: Tx) -> DeletionView:
        found, person = teams.find(tx, team).id, caller.person.id
        who = caller.name
        begun = removal.delete_team(
            tx, found, name=body.name, stop=body.stop, who=who, person_id=person
        )
        return DeletionView.of(begun)

    view = await api.store.write_first(delete)
    setattr(request.state, IS_AUDITED, True)
    return view


@router.read("/overview")
def get_overview(
    tx: Tx,
    person: PersonDep,
    archived: Annotated[bool, Query(description="List the archived teams instead.")] = False,
    team: Annotated[
        list[str] | None, Query(max_length=1000, description="Only teams with these ids.")
    ] = None,
) -> list[TeamOverview]:
    """List all teams with their members, newest activity first: at most 1,000 teams."""
    return [
        TeamOverview.of(
            team,
            coordinator_id=team.members[0].id if team.members else None,
            members=[MemberOverview.of(each, status=each.doing) for each in team.members],
        )
        for team in overview.read(tx, person, archived=archived, only=team or ())
    ]
