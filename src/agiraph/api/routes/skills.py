"""Skill routes: folders with a SKILL.md, and a person's consent to them."""

import asyncio
from functools import partial

from fastapi import APIRouter

from agiraph.api.deps import ApiDep, CallerDep, check_owner
from agiraph.api.extension_views import DisableRequest, EnableRequest, SkillView
from agiraph.api.problems import documented
from agiraph.domain.folders import GivenFolder
from agiraph.extensions.skills import Skills, SkillStatus
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = APIRouter(tags=["extensions"])
MOST_TEAMS = 1000


@router.get("/skills")
async def list_skills(api: ApiDep) -> list[SkillView]:
    """List the skills of the home, of the teams, and of the folders that teams were given."""

    def look(tx: Tx) -> list[GivenFolder]:
        found = teams.page(tx, limit=MOST_TEAMS)
        return [folder for team in found for folder in team.folders]

    folders = await api.store.read(look)
    found = await asyncio.to_thread(Skills(home=api.home).listed, folders)
    return [_view(one) for one in found]


@router.post("/skills/enable", responses=documented(409))
async def enable_skill(body: EnableRequest, api: ApiDep, caller: CallerDep) -> SkillView:
    """Enable a skill with exactly these files. Needs the scope `admin`.

    Agents then follow it as they follow the person.
    """
    check_owner(caller, "To enable a skill")
    enable = partial(Skills(home=api.home).enable, body.id, sha256=body.sha256, at=api.clock.now())
    return _view(await asyncio.to_thread(enable))


@router.post("/skills/disable", responses=documented())
async def disable_skill(body: DisableRequest, api: ApiDep, caller: CallerDep) -> None:
    """Take the consent to a skill back. Needs the scope `admin`."""
    check_owner(caller, "To disable a skill")
    await asyncio.to_thread(Skills(home=api.home).disable, body.id)


def _view(one: SkillStatus) -> SkillView:
    return SkillView(
        id=one.id,
        name=one.name,
        description=one.description,
        sha256=one.sha256,
        state=one.state,
        summary=one.summary,
        problem=one.problem,
        enabled_at=one.enabled_at,
    )
