"""Specialist routes: the kinds of agents that can be hired by name, their files, and a dry run."""

import asyncio

from pydantic import Field
from starlette.responses import Response

from agiraph.api.deps import ApiDep, CallerDep, check_owner
from agiraph.api.feature_views.specialists import (
    PromptPreview,
    SpecialistFile,
    SpecialistView,
)
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.errors import Refused
from agiraph.core.home import specialists
from agiraph.core.home.specialists import KnownSpecialist
from agiraph.core.store import teams

router: Router = Router("extensions")
BYTES_PER_TOKEN = 4


class SpecialistText(
    Body,
    example={"text": "---\nname: poet\ndescription: Writes poems.\n---\nYou write short poems."},
):
    """The file of a specialist: settings between two lines of ---, then its prompt."""

    text: str = Field(min_length=1, max_length=specialists.LONGEST)


class TrialRequest(Body, example={"team": "team_1", "task": "Write about the sea."}):
    """A task to try a specialist with. No model is called."""

    team: str = Field(min_length=1, max_length=400, description="The team's id or name.")
    task: str = Field(min_length=1, max_length=100_000)
    text: str | None = Field(
        default=None,
        max_length=specialists.LONGEST,
        description="The file to try in the place of the stored one; null: the stored one.",
    )


@router.get("/specialists", responses=documented())
async def list_specialists(api: ApiDep) -> list[SpecialistView]:
    """List the specialists that coordinators of all teams can hire, by name."""
    found = await asyncio.to_thread(specialists.listed, api.home)
    return [_view(one) for one in found]


@router.get("/specialists/{name}", responses=documented(404))
async def get_specialist(name: str, api: ApiDep) -> SpecialistFile:
    """Return a specialist with its file."""
    return _file(await asyncio.to_thread(specialists.find, api.home, name))


@router.put("/specialists/{name}", responses=documented())
async def write_specialist(
    name: str, body: SpecialistText, api: ApiDep, caller: CallerDep
) -> SpecialistFile:
    """Write a specialist's file into the home, in the place of a built-in one of the same name.

    Needs the scope `admin`. Agents that are hired from now on follow it.
    """
    check_owner(caller, "To change a specialist")
    return _file(await asyncio.to_thread(specialists.write, api.home, name, body.text))


@router.delete("/specialists/{name}", status_code=204, responses=documented(404))
async def delete_specialist(name: str, api: ApiDep, caller: CallerDep) -> Response:
    """Remove a specialist's file from the home; a built-in one of that name is used again.

    Needs the scope `admin`.
    """
    check_owner(caller, "To delete a specialist")
    await asyncio.to_thread(specialists.delete, api.home, name)
    return Response(status_code=204)


@router.post("/specialists/{name}/try", responses=documented(404))
async def try_specialist(name: str, body: TrialRequest, api: ApiDep) -> PromptPreview:
    """Return what the model of a specialist would be shown for a task. No model is called."""
    team = await api.store.read(teams.find, body.team)
    if api.preview is None:
        raise Refused("This process serves the API alone and cannot build prompts.")
    if body.text is None:
        tried = (await asyncio.to_thread(specialists.find, api.home, name)).specialist
    else:
        tried = specialists.checked(name, body.text)
    shown = await api.preview(team, tried, body.task)
    size = len(shown.system.encode()) + len(shown.task.encode())
    return PromptPreview.of(shown, tokens=size // BYTES_PER_TOKEN)


def _view(one: KnownSpecialist) -> SpecialistView:
    return SpecialistView.of(one.specialist, source=one.source)


def _file(one: KnownSpecialist) -> SpecialistFile:
    return SpecialistFile(specialist=_view(one), text=one.text)
