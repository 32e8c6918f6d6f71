"""File routes: the files of a team's folder, of its messages and of folders that it was given."""

import asyncio
import hashlib
import json
import mimetypes
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from starlette.responses import Response

from agiraph.api.deps import Api, ApiDep, Query
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.api.views import FileView, FolderView
from agiraph.core.domain.agents import GivenFolder, Team
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.attached_files import source_of
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.safe_folder import Folder, split
from agiraph.core.services.board import labels
from agiraph.core.store import teams
from agiraph.core.store.texts import attached_files
from agiraph.core.store.texts.attached_files import AttachedFile
from agiraph.core.store.tx import Tx
from agiraph.sandbox.folders import given_folders

router: Router = Router("files")

GIVEN = "folders"
"""First part of the path of a file in a folder that a person gave the team, outside its home."""
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
    """List the top level of a team's folder; `folders` are those that a person gave it."""
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
    """Return a file of a team, or list a folder.

    Below `folders/<name>` are the files of a folder that a person gave the team. They can only be
    read here, and no link leads out of the folder. `user_uploads` also lists the files that came
    with messages.
    """
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
    found = await api.store.read(teams.find, team)
    if source_of(path) is None:
        path = plain_path(path)
        attached = await _attached_files(api, found, path)
        response = await asyncio.to_thread(_open, api, found, path, offset, attached)
    else:
        data = await api.store.read(attached_bytes, found, path)
        response = _content(path, data[offset : offset + MOST_BYTES], offset)
    # After the file: a label is stored before the words that it is for are written.
    label = await api.store.read(labels.of_path, found.id, path)
    response.headers.update(source_headers(label))
    return response


async def _attached_files(api: Api, team: Team, folder: str) -> list[AttachedFile]:
    """Return the files of messages that a folder's listing needs."""
    if folder not in ("", UPLOADS):
        return []

    def read(tx: Tx) -> list[AttachedFile]:
        return attached_files.newest(tx, team.id, limit=MOST_ENTRIES if folder else 1)

    return await api.store.read(read)


def attached_bytes(tx: Tx, team: Team, path: str) -> bytes:
    """Return the bytes of a file that came with a message."""
    message_id, place = source_of(path) or ("", 0)
    data = attached_files.data_of(tx, team.id, message_id, place)
    if data is None:
        raise NotFound("file", path)
    return data


def plain_path(path: str) -> str:
    """Return a path as the names of labels and versions have it: without `//` and `/./`."""
    return "/".join(split(path))


def source_headers(label: Label) -> dict[str, str]:
    """Return the header that says whose words a file holds besides the team's; none for a clean
    one."""
    # ASCII only, as a header must be.
    return {SOURCES: json.dumps(label.sources)} if label else {}


def _open(
    api: Api, team: Team, path: str, offset: int, attached: Sequence[AttachedFile] = ()
) -> Response:
    if path == GIVEN and team.folders:
        return _as_response(path, _given_entries(team))
    opened, rest = _folder_of(api, team, path)
    with opened as folder:
        try:
            data = folder.read(rest, offset=offset, limit=MOST_BYTES)
        # It may be a folder. If it is not, the first refusal explains more than that of the
        # listing.
        except Refused as refusal:
            try:
                return _as_response(path, _listing(folder, path, rest, team, attached))
            except Refused:
                raise refusal from None
    return _content(path, data, offset)


def _content(path: str, data: bytes, offset: int) -> Response:
    headers = text_headers(path)
    if offset == 0:
        # Names the content, so that a person's change of it can be refused if it is not the last.
        headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()}"'
    return Response(data, headers=headers)


def _folder_of(api: Api, team: Team, path: str) -> tuple[Folder, str]:
    """Open the top folder of a path: a given folder or the team's own. Return it with the rest of
    the path. The caller closes the folder."""
    match path.split("/"):
        case [top, name, *rest] if top == GIVEN and team.folders:
            given = next((one for one in team.folders if one.name == name), None)
            if given is None:
                raise NotFound("folder", path, known="The team was not given such a folder.")
            return given_folders.open_folder(given), "/".join(rest)
        case _:
            return api.home.team(team.id).folder, path


def _listing(
    folder: Folder, path: str, rest: str, team: Team, attached: Sequence[AttachedFile]
) -> list[FileView]:
    if path == UPLOADS and attached and not folder.exists(path):
        return _as_entries(attached)
    entries = [
        FileView.of(e, path=f"{path}/{e.name}".lstrip("/"))
        for e in folder.list(rest, limit=MOST_ENTRIES)
    ]
    if path == "" and team.folders:
        changed = max(entry.modified for entry in _given_entries(team))
        entries.append(FileView(path=GIVEN, kind="folder", size=0, modified=changed))
    if path == "" and attached and all(entry.path != UPLOADS for entry in entries):
        last = attached[0].created_at
        entries.append(FileView(path=UPLOADS, kind="folder", size=0, modified=last))
    return entries + _as_entries(attached) if path == UPLOADS else entries


def _as_entries(attached: Sequence[AttachedFile]) -> list[FileView]:
    return [FileView.of(file, kind="file", modified=file.created_at) for file in attached]


def _given_entries(team: Team) -> list[FileView]:
    """Return an entry for each folder that a person gave the team, also if it is gone since."""
    return [
        FileView(path=f"{GIVEN}/{one.name}", kind="folder", size=0, modified=_changed(one, team))
        for one in team.folders
    ]


def _changed(given: GivenFolder, team: Team) -> datetime:
    try:
        return datetime.fromtimestamp(Path(given.path).stat().st_mtime, UTC)
    except OSError:
        return team.created_at


def _as_response(path: str, entries: list[FileView]) -> Response:
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
