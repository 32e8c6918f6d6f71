"""Extension routes: own tools, engines, channels, providers and skills, and a person's consent."""

import asyncio
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, CallerDep, Query, check_owner
from agiraph.api.feature_views.extensions import (
    ContentView,
    ExtensionView,
    FileTextView,
    SkillFile,
    SkillView,
)
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.records.skills import TOP
from agiraph.core.store import teams
from agiraph.core.store.tx import Tx
from agiraph.features.extensions.finding import CONSENT, LONGEST_BYTES, content_of, put
from agiraph.features.extensions.loading import Extensions
from agiraph.features.extensions.pinned import Item
from agiraph.features.extensions.skills import SKILL_CONSENT, Skills

router: Router = Router("extensions")
MOST_TEAMS = 1000
ContentId = Annotated[str, Query(min_length=1, max_length=400, examples=["tools/weather.py"])]


class EnableRequest(Body, example={"id": "tools/weather.py", "sha256": "0" * 64}):
    """Which extension or skill to enable, and the hash of the content that the person saw."""

    id: str = Field(min_length=1, max_length=400)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class NewExtension(Body, example={"id": "tools/weather.py", "text": "from agiraph import tool\n"}):
    """A new file with code of your own."""

    id: str = Field(min_length=1, max_length=400)
    text: str = Field(min_length=1, max_length=LONGEST_BYTES)


class DisableRequest(Body, example={"id": "tools/weather.py"}):
    """Which extension or skill to disable."""

    id: str = Field(min_length=1, max_length=400)


class SkillText(
    Body,
    example={
        "id": "skills/letters",
        "text": "---\nname: letters\ndescription: How letters are written.\n---\nBriefly.",
    },
):
    """The SKILL.md of a skill: settings between two lines of ---, then its instructions."""

    id: str = Field(min_length=1, max_length=400)
    text: str = Field(min_length=1, max_length=64 * 1024)


@router.get("/extensions")
async def list_extensions(api: ApiDep) -> list[ExtensionView]:
    """List the files and packages of the person, with the state of each one."""
    return [ExtensionView.of(one) for one in await _of(api).listed()]


@router.get("/extensions/content", responses=documented())
async def read_extension_content(id: ContentId, api: ApiDep, caller: CallerDep) -> ContentView:
    """Show the file of an extension in full, and what was enabled before. Needs `admin`."""
    check_owner(caller, "To read code of your own")
    found = await asyncio.to_thread(content_of, api.home, id)
    return _content(id, *found)


@router.post("/extensions/files", status_code=201, responses=documented(409))
async def add_extension(body: NewExtension, api: ApiDep, caller: CallerDep) -> ContentView:
    """Write a new file with code of your own into the home. Needs the scope `admin`.

    It does not run: it is off until it is enabled.
    """
    check_owner(caller, "To add code of your own")
    return _content(body.id, await asyncio.to_thread(put, api.home, body.id, body.text), {})


@router.post("/extensions/enable", responses=documented(409))
async def enable_extension(body: EnableRequest, api: ApiDep, caller: CallerDep) -> ExtensionView:
    """Enable an extension with exactly this content. Needs the scope `admin`.

    Its code then runs inside of the runtime.
    """
    check_owner(caller, "To enable code of your own")
    now = api.clock.now()
    return ExtensionView.of(await _of(api).enable(body.id, sha256=body.sha256, at=now))


@router.post("/extensions/disable", responses=documented())
async def disable_extension(body: DisableRequest, api: ApiDep, caller: CallerDep) -> None:
    """Take the consent to an extension back. Needs the scope `admin`."""
    check_owner(caller, "To disable code of your own")
    await _of(api).disable(body.id)


def _of(api: Api) -> Extensions:
    return api.parts.get(Extensions) or Extensions(home=api.home)


def _content(
    id: str, item: Item, before: Mapping[str, bytes], consent: str = CONSENT
) -> ContentView:
    """Return the files of an item beside those that were enabled."""
    names = sorted({*before, *item.files})
    pairs = ((name, before.get(name), item.files.get(name)) for name in names)
    files = [FileTextView(path=n, before=_text(b), now=_text(now)) for n, b, now in pairs]
    return ContentView(id=id, sha256=item.sha256, consent=consent, files=files)


def _text(data: bytes | None) -> str | None:
    """Return bytes as text; what is not UTF-8 is described."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"(not text: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()})"


@router.get("/skills")
async def list_skills(api: ApiDep) -> list[SkillView]:
    """List the skills of the home, of the teams, and of the folders that teams were given."""

    def look(tx: Tx) -> list[GivenFolder]:
        found = teams.page(tx, limit=MOST_TEAMS)
        return [folder for team in found for folder in team.folders]

    folders = await api.store.read(look)
    found = await asyncio.to_thread(Skills(home=api.home).listed, folders)
    return [SkillView.of(one) for one in found]


@router.get("/skills/content", responses=documented())
async def read_skill_content(id: ContentId, api: ApiDep, caller: CallerDep) -> ContentView:
    """Show the files of a skill in full, and those that were enabled before. Needs `admin`."""
    check_owner(caller, "To read the files of a skill")
    found = await asyncio.to_thread(Skills(home=api.home).content, id)
    return _content(id, *found, SKILL_CONSENT)


@router.post("/skills/enable", responses=documented(409))
async def enable_skill(body: EnableRequest, api: ApiDep, caller: CallerDep) -> SkillView:
    """Enable a skill with exactly these files. Needs the scope `admin`.

    Agents then follow it as they follow the person.
    """
    check_owner(caller, "To enable a skill")
    enable = partial(Skills(home=api.home).enable, body.id, sha256=body.sha256, at=api.clock.now())
    return SkillView.of(await asyncio.to_thread(enable))


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
    write = Skills(home=api.home).write_top
    return SkillView.of(await asyncio.to_thread(write, body.id, body.text))
