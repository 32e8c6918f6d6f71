"""Team settings routes: all settings at once, a preview of rules, the export, and the deletion."""

import asyncio
import re
import shutil
from collections.abc import Sequence
from typing import Any, ClassVar

from fastapi import APIRouter, BackgroundTasks, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.access_control import IS_AUDITED
from agiraph.api.deps import ApiDep, CallerDep, PersonDep, check_owner
from agiraph.api.presenters import team_view
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.settings_views import (
    DeletionView,
    MatchedCall,
    RuleMatches,
    RulesPreview,
    RuleView,
    TeamSettingsView,
)
from agiraph.api.team_export import write_zip
from agiraph.api.team_requests import PermissionRule
from agiraph.domain.agents import Rule
from agiraph.domain.ids import PersonId, TeamId
from agiraph.home.layout import DEFAULT_SOUL
from agiraph.policies.permission import first_match
from agiraph.services.lifecycle import continuations, removal
from agiraph.store import team_threads, teams
from agiraph.store.tx import Tx
from agiraph.tools.toolsets import BUILT_IN

router: APIRouter = api_router("teams")
MOST_CALLS = 500
"""Turns with calls that a preview of rules looks at."""
MOST_EXAMPLES = 5
ARGUMENT_CHARACTERS = 2000
ZIP: dict[int | str, dict[str, Any]] = {
    200: {"description": "A ZIP file", "content": {"application/zip": {}}}
}


class RulesRequest(BaseModel):
    """Permission rules to try, in order. Nothing is changed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"rules": [{"tool": "bash", "action": "ask", "pattern": "rm *"}]}
        },
    )

    rules: list[PermissionRule] = Field(max_length=200)


class DeletionRequest(BaseModel):
    """Says that a team is to be deleted for good."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"name": "Count the beans"}}
    )

    name: str = Field(max_length=400, description="The team's name, exactly as it is.")
    stop: bool = Field(
        default=False, description="Whether to end its work; without it, a team at work is refused."
    )


@router.get("/teams/{team}/settings", responses=documented(404))
async def get_settings(team: str, api: ApiDep, person: PersonDep) -> TeamSettingsView:
    """Return all settings of a team, with its budget and what is spent of it."""
    view = await api.store.read(_settings, team, person)
    soul = await asyncio.to_thread(api.home.soul, TeamId(view.team.id))
    return view.model_copy(update={"soul": soul, "is_default_soul": soul == DEFAULT_SOUL})


def _settings(tx: Tx, name: str, person: PersonId) -> TeamSettingsView:
    team = teams.find(tx, name)
    members = teams.members(tx, team.id)
    return TeamSettingsView(
        team=team_view(tx, team, person),
        soul="",
        is_default_soul=True,
        model=members[0].model if members else "",
        permissions=[
            RuleView(tool=rule.tool, action=rule.action, pattern=rule.pattern)
            for rule in team.permissions
        ],
        limits=team.limits,
        budget=continuations.goal_budget(tx, team.id),
    )


@router.post("/teams/{team}/permissions/preview", responses=documented(404))
async def preview_permissions(team: str, body: RulesRequest, api: ApiDep) -> RulesPreview:
    """Tell which of the team's newest tool calls these rules would have decided on.

    Paths are compared as the model wrote them. Nothing is changed.
    """
    rules = [Rule(**rule.model_dump()) for rule in body.rules]

    def look(tx: Tx) -> RulesPreview:
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
        return _preview(rules, calls)

    return await api.store.read(look)


def _preview(rules: Sequence[Rule], calls: Sequence[MatchedCall]) -> RulesPreview:
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
    arguments: dict[str, Any] = call.get("arguments") or {}
    tool = BUILT_IN.get(str(call.get("name", "")))
    order = [*(tool.arguments.model_fields if tool is not None else ()), *arguments]
    value = next((arguments[name] for name in order if name in arguments), "")
    return str(value).strip()[:ARGUMENT_CHARACTERS]


@router.get("/teams/{team}/export", responses={**ZIP, **documented(404)})
async def export_team(
    team: str, api: ApiDep, caller: CallerDep, after: BackgroundTasks
) -> FileResponse:
    """Return all data and files of a team as a ZIP file of readable files. Needs the scope `admin`.

    Known API keys in it are overwritten.
    """
    check_owner(caller, "To export a team")
    found = await api.store.read(teams.find, team)
    path = await write_zip(api.store, api.home.path, found)
    after.add_task(shutil.rmtree, path.parent, ignore_errors=True)
    name = _file_name(found.name)
    return FileResponse(path, media_type="application/zip", filename=name, background=after)


def _file_name(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60].strip("-")
    return f"{plain or 'team'}.zip"


@router.post("/teams/{team}/delete", status_code=202, responses=documented(404, 409))
async def delete_team(
    team: str,
    body: DeletionRequest,
    api: ApiDep,
    caller: CallerDep,
    person: PersonDep,
    request: Request,
) -> DeletionView:
    """Delete a team for good: its rows, files, search index and memories. Needs the scope `admin`.

    The team is gone at once; its data is removed in the background, also after a crash. The audit
    keeps one entry. A team that works is refused with 409 unless `stop` is true.
    """
    check_owner(caller, "To delete a team for good")

    def delete(tx: Tx) -> DeletionView:
        begun = removal.delete_team(
            tx,
            teams.find(tx, team).id,
            name=body.name,
            stop=body.stop,
            who=caller.name,
            person_id=person,
        )
        return DeletionView(team_id=begun.team_id, name=begun.name)

    view = await api.store.write(delete)
    setattr(request.state, IS_AUDITED, True)
    return view
