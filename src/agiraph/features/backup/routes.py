"""Archive routes: a folder of a team, all its results, or all its data, as one zip file."""

import asyncio
import re
import shutil
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from agiraph.api.deps import Api, ApiDep, CallerDep, Query, check_owner
from agiraph.api.problems import documented
from agiraph.api.routes.files import attached_bytes
from agiraph.api.routing import Router
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.work import WorkNode
from agiraph.core.home import zip_stream
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.node_folder import PUBLISHED
from agiraph.core.home.zip_stream import MOST_FILES, Member, safe_name
from agiraph.core.services.board import texts
from agiraph.core.store import teams
from agiraph.core.store.lists import results
from agiraph.core.store.texts import attached_files
from agiraph.core.store.texts.attached_files import AttachedFile
from agiraph.core.store.tx import Tx
from agiraph.features.backup.team_export import write_zip

router: Router = Router("files")
export_router: Router = Router("teams")
ZIP: dict[int | str, dict[str, Any]] = {
    200: {"description": "A ZIP file", "content": {"application/zip": {}}}
}

MOST_RESULTS = 500
"""Nodes whose results go into one archive, the newest first."""
ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A zip file", "content": {"application/zip": {}}}
}


@router.get(
    "/teams/{team}/archive",
    responses={**ARCHIVE, **documented(404)},
    response_class=Response,
)
async def download_archive(
    team: str,
    api: ApiDep,
    path: Annotated[str, Query(max_length=4096, description="A folder of the team.")] = "",
    results_only: Annotated[
        bool,
        Query(alias="results", description="The published files of all work, instead of a folder."),
    ] = False,
) -> StreamingResponse:
    """Return a folder of a team as a zip file, or all files that its work has published.

    At most 5,000 files with 1 GiB in all; links are left out. With the uploads come the files of
    messages, below `attached`.
    """
    folder = path.strip("/")

    def look(tx: Tx) -> tuple[Team, list[WorkNode], list[AttachedFile]]:
        found = teams.find(tx, team)
        if results_only:
            return found, results.published(tx, found.id, limit=MOST_RESULTS), []
        if folder not in ("", UPLOADS):
            return found, [], []
        # One too many shows that not all of them go into one archive.
        return found, [], attached_files.newest(tx, found.id, limit=MOST_FILES + 1)

    found, nodes, attached = await api.store.read(look)
    if results_only:
        files = await asyncio.to_thread(_results, api, found, nodes)
    else:
        sent = _attached(api, found, attached, under="" if folder else f"{UPLOADS}/")
        files = await asyncio.to_thread(_below, api, found, folder, sent)
    name = f"{found.name} results" if results_only else folder.rpartition("/")[2] or found.name
    body = zip_stream.stream(api.home.team(found.id).folder, files)
    file_name = quote(f"{safe_name(name)[:80].strip() or 'files'}.zip", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{file_name}"}
    return StreamingResponse(body, media_type="application/zip", headers=headers)


def _attached(api: Api, team: Team, files: Sequence[AttachedFile], *, under: str) -> list[Member]:
    """Return the files of messages. The archive is written in a thread, which reads each when its
    turn comes."""
    loop = asyncio.get_running_loop()

    def read(path: str) -> bytes:
        data = api.store.read(attached_bytes, team, path)
        return asyncio.run_coroutine_threadsafe(data, loop).result()

    return [
        Member(
            path=file.path,
            name=f"{under}attached/{file.path.rpartition('/')[2]}",
            size=file.size,
            modified=file.created_at,
            read=partial(read, file.path),
        )
        for file in files
    ]


def _below(api: Api, team: Team, path: str, attached: list[Member]) -> list[Member]:
    """Return the files below a folder, and these with them."""
    with api.home.team(team.id).folder as folder:
        if path == UPLOADS and attached and not folder.exists(path):
            found = attached
        else:
            found = zip_stream.members(folder, path) + attached
    if len(found) > MOST_FILES:
        raise Refused(
            f"{path or team.name!r} has more than {MOST_FILES:,} files with those of "
            "messages. Download a smaller folder."
        )
    zip_stream.check_size(found)
    return found


def _results(api: Api, team: Team, nodes: list[WorkNode]) -> list[Member]:
    """Return the published files of these nodes, each node's in a folder with its title."""
    found: list[Member] = []
    with api.home.team(team.id).folder as folder:
        for node in nodes:
            name = texts.subject_of(node)
            title = safe_name(name.replace("/", " "))[:60].strip() or "work"
            under = f"{title} ({node.id[-6:]})"
            try:
                found += zip_stream.members(folder, f"nodes/{node.id}/{PUBLISHED}", under=under)
            except NotFound:  # it was removed by hand
                continue
            if len(found) > MOST_FILES:
                raise Refused(
                    f"The results have more than {MOST_FILES:,} files. Download them one by one: "
                    "each result has its own archive."
                )
    zip_stream.check_size(found)
    return found


@export_router.get("/teams/{team}/export", responses={**ZIP, **documented(404)})
async def export_team(team: str, api: ApiDep, caller: CallerDep) -> FileResponse:
    """Return all data and files of a team as a ZIP file of readable files. Needs the scope `admin`.

    Known API keys in it are overwritten.
    """
    check_owner(caller, "To export a team")
    found = await api.store.read(teams.find, team)
    path = await write_zip(api.store, api.home.path, found)
    after = BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
    plain = re.sub(r"[^A-Za-z0-9]+", "-", found.name).strip("-").lower()[:60].strip("-")
    name = f"{plain or 'team'}.zip"
    return FileResponse(path, media_type="application/zip", filename=name, background=after)
