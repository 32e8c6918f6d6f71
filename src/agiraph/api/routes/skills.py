"""Skill routes: folders with a SKILL.md, and a person's consent to them."""

import asyncio
from functools import partial
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.deps import ApiDep, CallerDep, check_owner
from agiraph.api.extension_presenters import ContentId, content_view
from agiraph.api.extension_views import ContentView, DisableRequest, EnableRequest, SkillView
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.settings_views import SkillFile
from agiraph.domain.folders import GivenFolder
from agiraph.domain.skills import TOP
from agiraph.extensions.skills import Skills, SkillStatus
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("extensions")
MOST_TEAMS = 1000


class SkillText(BaseModel):
    """The SKILL.md of a skill: settings between two lines of ---, then its instructions."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "id": "skills/letters",
                "text": "---\nname: letters\ndescription: How letters are written.\n---\nBriefly.",
            }
        },
    )

    id: str = Field(min_length=1, max_length=400)
    text: str = Field(min_length=1, max_length=64 * 1024)


@router.get("/skills")
async def list_skills(api: ApiDep) -> list[SkillView]:
    """List the skills of the home, of the teams, and of the folders that teams were given."""

    def look(tx: Tx) -> list[GivenFolder]:
        found = teams.page(tx, limit=MOST_TEAMS)
        return [folder for team in found for folder in team.folders]

    folders = await api.store.read(look)
    found = await asyncio.to_thread(Skills(home=api.home).listed, folders)
    return [_view(one) for one in found]


@router.get("/skills/content", responses=documented())
async def read_skill_content(id: ContentId, api: ApiDep, caller: CallerDep) -> ContentView:
    """Show the files of a skill in full, and those that were enabled before. Needs `admin`."""
    check_owner(caller, "To read the files of a skill")
    return content_view(id, await asyncio.to_thread(Skills(home=api.home).content, id))


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


@router.get("/skills/file", responses=documented())
async def get_skill_file(
    api: ApiDep, caller: CallerDep, id: Annotated[str, Query(min_length=1, max_length=400)]
) -> SkillFile:
    """Return the SKILL.md of a skill, and the line about it that agents are shown. One outside of
    the home needs the scope `admin`."""
    if id.startswith(("/", "~")):
        # Any folder of the machine can be named here, also one that no team was given.
        check_owner(caller, "To read files outside of the home")
    found, is_ours = await asyncio.to_thread(Skills(home=api.home).files_of, id)
    return SkillFile(
        id=id,
        text=found.files[TOP].decode(errors="replace"),
        files=[name for name in found.files if name != TOP],
        shown=f"- {found.name}: {found.description}",
        can_edit=is_ours,
    )


@router.put("/skills/file", responses=documented())
async def write_skill_file(body: SkillText, api: ApiDep, caller: CallerDep) -> SkillView:
    """Write the SKILL.md of a skill in the home, or a new skill `skills/NAME`. Needs the scope
    `admin`. It is off until it is enabled again."""
    check_owner(caller, "To change a skill")
    return _view(await asyncio.to_thread(Skills(home=api.home).write_top, body.id, body.text))


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
