"""Archive routes: a folder of a team, or all its results, as one zip file."""

import asyncio
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from agiraph.api.deps import Api, ApiDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.agents import Team
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.work import WorkNode
from agiraph.home import zip_stream
from agiraph.home.node_folder import PUBLISHED
from agiraph.home.zip_stream import MOST_FILES, Member, safe_name
from agiraph.services.board import texts
from agiraph.store import results, teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("files")

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

    At most 5,000 files with 1 GiB in all; links are left out.
    """

    def look(tx: Tx) -> tuple[Team, list[WorkNode]]:
        found = teams.find(tx, team)
        if not results_only:
            return found, []
        return found, results.published(tx, found.id, limit=MOST_RESULTS)

    found, nodes = await api.store.read(look)
    folder = path.strip("/")
    if results_only:
        files = await asyncio.to_thread(_results, api, found, nodes)
    else:
        files = await asyncio.to_thread(_below, api, found, folder)
    name = f"{found.name} results" if results_only else folder.rpartition("/")[2] or found.name
    body = zip_stream.stream(api.home.team(found.id).folder, files)
    file_name = quote(f"{safe_name(name)[:80].strip() or 'files'}.zip", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{file_name}"}
    return StreamingResponse(body, media_type="application/zip", headers=headers)


def _below(api: Api, team: Team, path: str) -> list[Member]:
    with api.home.team(team.id).folder as folder:
        return zip_stream.members(folder, path)


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
