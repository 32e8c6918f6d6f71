"""Team routes: create, list, pause, resume, stop, archive, restore and redirect teams."""

import asyncio
from collections.abc import Callable, Sequence

from fastapi import APIRouter, Response

from agiraph.api import kept_texts
from agiraph.api.access_control import Caller
from agiraph.api.attachments import received
from agiraph.api.deps import (
    After,
    Api,
    ApiDep,
    CallerDep,
    Idempotent,
    Limit,
    PersonDep,
    SaidByDep,
    check_owner,
)
from agiraph.api.presenters import team_view, team_views
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.team_requests import NewGoal, NewTeam, TeamChanges, lines_of
from agiraph.api.views import TeamView
from agiraph.domain.agents import Limits, Rule
from agiraph.domain.folders import GivenFolder
from agiraph.domain.ids import PersonId
from agiraph.home import file_lock, given_folders
from agiraph.home.layout import soul_text
from agiraph.services.board import budgets, labels
from agiraph.services.lifecycle import settings
from agiraph.services.lifecycle import teams as verbs
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("teams")


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
    await api.models.learn(body.model or api.model)
    api.check_model(body.model or api.model)
    await api.check_tools(body.tools, team=body.name)
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
        return team_views(tx, teams.page(tx, after=after, limit=limit), person)

    return await api.store.read(look)


@router.get("/teams/{team}", responses=documented(404))
async def get_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Return one team by its id or name."""
    return await api.store.read(lambda tx: team_view(tx, teams.find(tx, team), person))


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
        return await api.store.write(change)
    return await _with_soul(api, team, body.soul, change)


async def _with_soul(api: Api, team: str, soul: str, change: Callable[[Tx], TeamView]) -> TeamView:
    """Change a team, and write its SOUL.md; keep the text before the change and the new one."""
    found = await kept_texts.prepared(api, team)
    async with file_lock.hold(api.home, found.id):
        label = await api.store.read(labels.of_path, found.id, "SOUL.md")
        keep = kept_texts.keep_current
        await asyncio.to_thread(keep, api.home, found, "SOUL.md", is_labelled=bool(label))
        changed = await api.store.write(change)
        # After the commit, which refuses an archived team. If the process dies here, the client
        # gets no response and sends the change again.
        await kept_texts.write(api, found, "SOUL.md", soul_text(soul), label)
    return changed


@router.delete("/teams/{team}", status_code=204, responses=documented(404))
async def archive_team(team: str, api: ApiDep) -> Response:
    """Stop and archive a team. Nothing is deleted, and the team can be restored."""
    await api.store.write(lambda tx: verbs.archive(tx, teams.find(tx, team).id))
    return Response(status_code=204)


@router.post("/teams/{team}/restore", responses=documented(404))
async def restore_team(team: str, api: ApiDep, person: PersonDep) -> TeamView:
    """Take a team out of the archive. Work that the archiving cancelled stays cancelled."""
    return await _switched(api, team, "restore", person)


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
    """Give a team a new goal, which starts a new run. What the team knows is kept, and so are the
    limits of its last goal that the new budget does not name."""

    def aim(tx: Tx) -> TeamView:
        found = teams.find(tx, team)
        chosen = {} if body.budget is None else body.budget.chosen()
        limits = budgets.for_next_goal(tx, found.id, chosen)
        is_priced = api.is_priced(teams.coordinator(tx, found.id).model)
        budget = budgets.for_goal(limits, mode=found.mode, is_priced=is_priced)
        aimed = verbs.set_goal(
            tx,
            found.id,
            body.goal,
            budget=budget,
            acceptance=lines_of(body.acceptance),
            attachments=received(body.attachments),
        )
        return team_view(tx, aimed, person)

    return await idempotently(aim, status=201)  # pyright: ignore[reportReturnType]
