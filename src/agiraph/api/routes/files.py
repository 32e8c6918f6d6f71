"""Files: what a team has in its folder, never anything outside it."""

import asyncio
import mimetypes
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from agiraph.api.deps import Api, TheApi
from agiraph.api.problems import documented
from agiraph.api.views import FileView, Listing
from agiraph.domain.errors import Refused
from agiraph.domain.ids import TeamId
from agiraph.home.safe_folder import Folder
from agiraph.store import teams

router = APIRouter(tags=["files"])

MOST_ENTRIES = 2000
MOST_BYTES = 8 * 2**20
_SHOWN_AS_THEY_ARE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A folder's listing as JSON, or a file's bytes",
        "content": {"application/octet-stream": {}, "text/plain": {}},
    }
}


@router.get("/teams/{team}/files", responses=documented(404), response_model=Listing)
async def list_home(team: str, api: TheApi) -> Response:
    """The top of a team's folder."""
    return await _browse(api, team, "")


@router.get(
    "/teams/{team}/files/{path:path}",
    responses={**FILES, **documented(404)},
    response_model=Listing,
)
async def browse_files(
    team: str,
    path: str,
    api: TheApi,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    """A file of a team, or what is in a folder of it."""
    return await _browse(api, team, path, offset)


@router.get("/teams/{team}/memory", responses=documented(404), response_model=Listing)
async def list_memory(team: str, api: TheApi) -> Response:
    """What a team keeps in its notes."""
    return await _browse(api, team, "memory")


@router.get(
    "/teams/{team}/memory/{path:path}",
    responses={**FILES, **documented(404)},
    response_model=Listing,
)
async def browse_memory(team: str, path: str, api: TheApi) -> Response:
    """One of a team's notes, or what is in a folder of them."""
    return await _browse(api, team, f"memory/{path}")


async def _browse(api: Api, team: str, path: str, offset: int = 0) -> Response:
    found = await api.store.read(teams.find, team)
    return await asyncio.to_thread(_open, api, found.id, path, offset)


def _open(api: Api, team_id: TeamId, path: str, offset: int) -> Response:
    with api.home.team(team_id).folder as folder:
        try:
            data = folder.read(path, offset=offset, limit=MOST_BYTES)
        except Refused as refusal:
            try:
                return _listing(folder, path)
            except Refused:
                raise refusal from None
    return Response(data, headers=_headers(path))


def _listing(folder: Folder, path: str) -> Response:
    entries = [
        FileView(path=f"{path}/{e.name}".lstrip("/"), kind=e.kind, size=e.size, modified=e.modified)
        for e in folder.list(path, limit=MOST_ENTRIES)
    ]
    body = Listing(path=path, entries=entries).model_dump_json()
    return Response(body, media_type="application/json")


def _headers(path: str) -> dict[str, str]:
    """What agents wrote is shown as text or a picture, and never run as a page."""
    guessed = mimetypes.guess_type(path)[0] or "text/plain"
    shown = guessed if guessed in _SHOWN_AS_THEY_ARE else "text/plain; charset=utf-8"
    return {
        "Content-Type": shown,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
