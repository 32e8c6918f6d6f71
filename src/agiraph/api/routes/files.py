"""File routes: the files in a team's folder, never anything outside it."""

import asyncio
import hashlib
import json
import mimetypes
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from agiraph.api.deps import Api, ApiDep
from agiraph.api.problems import documented
from agiraph.api.views import FileView, FolderView
from agiraph.domain.errors import Refused
from agiraph.domain.ids import TeamId
from agiraph.domain.labels import Label
from agiraph.home.safe_folder import Folder
from agiraph.home.safe_open import split
from agiraph.services.knowledge import files as labelled_files
from agiraph.store import teams

router: APIRouter = APIRouter(tags=["files"])

MOST_ENTRIES = 2000
MOST_BYTES = 8 * 2**20
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
SOURCES = "Agiraph-Sources"
"""The header with the sources of a file's words, as a JSON list; absent if the team wrote them."""
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A folder's listing as JSON, or a file's bytes",
        "content": {"application/octet-stream": {}, "text/plain": {}},
        "headers": {
            SOURCES: {
                "description": "Who else wrote words of the file: a JSON list of sources. Absent "
                "if only the team and its persons did.",
                "schema": {"type": "string"},
            }
        },
    }
}


@router.get("/teams/{team}/files", responses=documented(404), response_model=FolderView)
async def list_home(team: str, api: ApiDep) -> Response:
    """List the top level of a team's folder."""
    return await _browse(api, team, "")


@router.get(
    "/teams/{team}/files/{path:path}",
    responses={**FILES, **documented(404)},
    response_model=FolderView,
)
async def browse_files(
    team: str,
    path: str,
    api: ApiDep,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    picture: Annotated[
        bool, Query(description="Whether to return an SVG file as a picture for an <img> element.")
    ] = False,
) -> Response:
    """Return a file of a team, or list a folder."""
    response = await _browse(api, team, path, offset)
    if picture and path.lower().endswith(".svg"):
        # An <img> runs no script of a picture. Opened as a page of its own, its policy lets it
        # run, load and send nothing either, and gives it an origin of its own.
        response.headers["Content-Type"] = "image/svg+xml"
        response.headers["Content-Security-Policy"] = PICTURE_POLICY
    return response


@router.get("/teams/{team}/memory", responses=documented(404), response_model=FolderView)
async def list_memory(team: str, api: ApiDep) -> Response:
    """List a team's notes."""
    return await _browse(api, team, "memory")


@router.get(
    "/teams/{team}/memory/{path:path}",
    responses={**FILES, **documented(404)},
    response_model=FolderView,
)
async def browse_memory(team: str, path: str, api: ApiDep) -> Response:
    """Return one of a team's notes, or list a folder of them."""
    return await _browse(api, team, f"memory/{path}")


async def _browse(api: Api, team: str, path: str, offset: int = 0) -> Response:
    path = plain_path(path)
    found = await api.store.read(teams.find, team)
    response = await asyncio.to_thread(_open, api, found.id, path, offset)
    # After the file: a label is stored before the words that it is for are written.
    label = await api.store.read(labelled_files.label_of, found.id, path)
    response.headers.update(source_headers(label))
    return response


def plain_path(path: str) -> str:
    """Return a path as the names of labels and versions have it: without `//` and `/./`."""
    return "/".join(split(path))


def source_headers(label: Label) -> dict[str, str]:
    """Return the header that says whose words a file holds besides the team's; none for a clean
    one."""
    # ASCII only, as a header must be.
    return {SOURCES: json.dumps(label.sources)} if label else {}


def _open(api: Api, team_id: TeamId, path: str, offset: int) -> Response:
    with api.home.team(team_id).folder as folder:
        try:
            data = folder.read(path, offset=offset, limit=MOST_BYTES)
        # It may be a folder. If it is not, the first refusal explains more than that of the
        # listing.
        except Refused as refusal:
            try:
                return _listing(folder, path)
            except Refused:
                raise refusal from None
    headers = text_headers(path)
    if offset == 0:
        # Names the content, so that a person's change of it can be refused if it is not the last.
        headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()}"'
    return Response(data, headers=headers)


def _listing(folder: Folder, path: str) -> Response:
    entries = [
        FileView(path=f"{path}/{e.name}".lstrip("/"), kind=e.kind, size=e.size, modified=e.modified)
        for e in folder.list(path, limit=MOST_ENTRIES)
    ]
    body = FolderView(path=path, entries=entries).model_dump_json()
    return Response(body, media_type="application/json")


def text_headers(path: str) -> dict[str, str]:
    """Return headers with which a browser shows a file as text or image.

    Agents write these files: a browser must never run one as a page of this origin.
    """
    guessed = mimetypes.guess_type(path)[0] or "text/plain"
    shown = guessed if guessed in _IMAGE_TYPES else "text/plain; charset=utf-8"
    return {
        "Content-Type": shown,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
