"""Document routes: a person changes texts of a team, reads their versions, and uploads files."""

import asyncio
import base64
import hashlib
import math
from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import Response

from agiraph.api import kept_texts
from agiraph.api.deps import Api, ApiDep, Query
from agiraph.api.file_views import FileVersionView, SavedView
from agiraph.api.problems import documented
from agiraph.api.routes.files import FILES, plain_path, source_headers, text_headers
from agiraph.api.routing import Body, Router
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN, Label, of_file
from agiraph.core.home import file_lock, file_versions
from agiraph.core.home.file_versions import EDITABLE, LONGEST, LONGEST_SUMMARY, is_editable
from agiraph.core.home.layout import UPLOADS, goal_text
from agiraph.core.home.zip_stream import safe_name
from agiraph.core.services.board import labels
from agiraph.core.services.lifecycle import settings
from agiraph.core.store import teams

router: Router = Router("files")

MOST_CHARACTERS = 1_000_000
UPLOAD_BYTES = 10 * 2**20
MOST_UPLOADS, MOST_UPLOADED_BYTES = 500, 500 * 2**20
NEW = "none"
"""The `expected` of a file that must not exist yet."""
CHANGED = (
    "{path!r} was changed meanwhile, so your text was not saved. Read what it holds now, and save "
    "again with the hash of that."
)

NEW_GOAL = (
    "The team has a new goal, so your text was not saved. GOAL.md shows it when work on it begins."
)


class SaveRequest(Body, example={"text": "# Soul\n\nBe brief.\n", "expected": "none"}):
    """The new text of a file."""

    text: str = Field(max_length=MOST_CHARACTERS)
    expected: str = Field(
        max_length=100,
        description="The SHA-256 of the content that was changed, as the ETag of the file gives "
        "it; `none`: the file must not exist yet.",
    )


class RestoreRequest(Body, example={"path": "SOUL.md", "expected": "0" * 64}):
    """The file whose earlier version is brought back."""

    path: str = Field(min_length=1, max_length=4096)
    expected: str = Field(
        max_length=100,
        description="The SHA-256 of what the file holds now, as its ETag gives it; `none`: the "
        "file must not exist.",
    )


class UploadRequest(Body, example={"name": "prices.csv", "data": "YSxiCg=="}):
    """A file that a person gives to a team."""

    name: str = Field(min_length=1, max_length=200)
    data: str = Field(description="Base64; at most 10 MiB when decoded.", max_length=14_000_000)
    if_exists: Literal["refuse", "replace", "keep_both"] = Field(
        default="refuse",
        description="For a name that is taken: refuse with 409, replace the file and keep the old "
        "one as a version, or choose another name.",
    )


@router.put("/teams/{team}/files/{path:path}", responses=documented(404, 409))
async def save_file(team: str, path: str, body: SaveRequest, api: ApiDep) -> SavedView:
    """Save a text of a team: its soul, goal, plan or notes, or an uploaded text.

    What it held before is kept as a version. If somebody has changed it since, nothing is saved and
    the answer is 409.
    """
    path = plain_path(path.strip("/"))
    _check_editable(path)
    _check_length(path, body.text)
    found = await kept_texts.prepared(api, team)
    async with file_lock.hold(api.home, found.id):
        label = await _replaced_label(api, found, path, body.expected)
        return await _save(api, found, path, body.text.encode(errors="replace"), label)


async def _replaced_label(api: Api, team: Team, path: str, expected: str) -> Label:
    """Keep what a file holds, and return its label; raise `Conflict` if it is not the expected
    content. The caller holds the file lock."""
    label = await api.store.read(labels.of_path, team.id, path)
    before = await kept_texts.keep_current(api, team, path, is_labelled=bool(label))
    is_same = before is not None and _digest(before) == expected.strip('"')
    if not (is_same or (before is None and expected == NEW)):
        raise Conflict(CHANGED.format(path=path))
    if path == "GOAL.md" and before != goal_text(team):
        raise Conflict(NEW_GOAL)
    return label


async def _save(api: Api, team: Team, path: str, data: bytes, label: Label) -> SavedView:
    """Store a document's label, then write the document. The caller holds the file's lock."""
    if path in settings.DOCUMENT_COLUMNS:
        team = await api.store.write_first(
            settings.follow_document, team.id, path, _text(path, data)
        )
        data = goal_text(team) if path == "GOAL.md" else data
    await kept_texts.write(api, team, path, data, label)
    return SavedView(path=path, size=len(data), hash=_digest(data))


def _check_editable(path: str) -> None:
    if not is_editable(path):
        raise Refused(f"{path[:200]!r} cannot be changed here. {EDITABLE}")


def _check_length(path: str, text: str) -> None:
    is_summary = path.rpartition("/")[2] == "MEMORY.md"
    is_note = path.startswith("memory/") or "/memory/" in path
    limit = LONGEST_SUMMARY if is_summary else LONGEST if is_note else MOST_CHARACTERS * 4
    if len(text.encode(errors="replace")) > limit:
        raise Refused(
            f"{path!r} may have {limit // 1024} KiB at most, because agents read it whole. Move a "
            "part of it into another note."
        )


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{path!r} must be UTF-8 text, because every agent reads it.") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _version(api: Api, team: Team, path: str, version: str) -> tuple[bytes, Label]:
    """Return the content and the label of an earlier version."""
    with api.home.team(team.id).folder as folder:
        data = file_versions.read(folder, path, version)
        known = file_versions.versions(folder, path)
    is_labelled = any(v.is_labelled for v in known if v.id == version)
    return data, UNKNOWN if is_labelled else CLEAN


@router.get("/teams/{team}/versions", responses=documented(404))
async def list_versions(
    team: str, api: ApiDep, path: Annotated[str, Query(min_length=1, max_length=4096)]
) -> list[FileVersionView]:
    """List the earlier contents of a text that a person or an agent has changed, newest first."""
    path = plain_path(path.strip("/"))
    found = await api.store.read(teams.find, team)

    def look() -> list[FileVersionView]:
        with api.home.team(found.id).folder as folder:
            return [FileVersionView.of(v) for v in file_versions.versions(folder, path)]

    return await asyncio.to_thread(look)


@router.get(
    "/teams/{team}/versions/{version}",
    responses={**FILES, **documented(404)},
    response_class=Response,
)
async def read_version(
    team: str,
    version: str,
    api: ApiDep,
    path: Annotated[str, Query(min_length=1, max_length=4096)],
) -> Response:
    """Return an earlier content of a file."""
    path = plain_path(path.strip("/"))
    found = await api.store.read(teams.find, team)
    data, label = await asyncio.to_thread(_version, api, found, path, version)
    return Response(data, headers=text_headers("text.txt") | source_headers(label))


@router.post("/teams/{team}/versions/{version}/restore", responses=documented(404, 409))
async def restore_version(team: str, version: str, body: RestoreRequest, api: ApiDep) -> SavedView:
    """Bring an earlier content of a file back, byte for byte.

    The replaced content is kept as a version. If somebody has changed the file since the client
    read it (`expected`), nothing is restored and the response is 409.
    """
    path = plain_path(body.path.strip("/"))
    _check_editable(path)
    found = await kept_texts.prepared(api, team)
    async with file_lock.hold(api.home, found.id):
        data, old = await asyncio.to_thread(_version, api, found, path, version)
        label = await _replaced_label(api, found, path, body.expected)
        return await _save(api, found, path, data, label | old)


@router.post("/teams/{team}/uploads", status_code=201, responses=documented(404, 409))
async def upload_file(team: str, body: UploadRequest, api: ApiDep) -> SavedView:
    """Upload a file for a team. All its agents may read it in `user_uploads/`.

    It is never unpacked or run. Its words count as those of somebody else, as those of an attached
    file do, unless the team's trust is open.
    """
    try:
        data = base64.b64decode(body.data, validate=True)
    except ValueError as error:
        raise Refused(f"The data of {body.name!r} is not base64: {error}.") from error
    if len(data) > UPLOAD_BYTES:
        raise Refused(
            f"{body.name!r} has {math.ceil(len(data) * 10 / 2**20) / 10:.1f} MiB; a file may have "
            f"{UPLOAD_BYTES // 2**20} MiB at most. Give the team its folder instead."
        )
    found = await kept_texts.prepared(api, team)
    if found.status == "archived":
        raise Refused(f"Team {found.name!r} is archived; restore it before you upload files.")
    async with file_lock.hold(api.home, found.id):
        path = await asyncio.to_thread(_free_path, api, found, body, len(data))
        label = CLEAN if found.trust == "open" else of_file(path.rpartition("/")[2])
        await kept_texts.keep_current(api, found, path, is_labelled=True)
        await kept_texts.write(api, found, path, data, label)
        return SavedView(path=path, size=len(data), hash=_digest(data))


def _free_path(api: Api, team: Team, body: UploadRequest, size: int) -> str:
    """Return the path of an upload; raise `Conflict` if it is taken and must not be replaced."""
    name = safe_name(body.name.replace("/", "_").replace("\\", "_")).strip() or "file"
    with api.home.team(team.id).folder as folder, folder.sub(UPLOADS, create=True) as uploads:
        entries = uploads.list()
        taken = {entry.name.casefold(): entry.name for entry in entries}
        is_full = len(entries) >= MOST_UPLOADS
        if is_full or sum(e.size for e in entries) + size > MOST_UPLOADED_BYTES:
            raise Refused(
                f"A team keeps at most {MOST_UPLOADS} uploads with {MOST_UPLOADED_BYTES // 2**20} "
                "MiB in all. Give the team a folder instead."
            )
    known = taken.get(name.casefold())
    if known is None:
        return f"{UPLOADS}/{name}"
    if body.if_exists == "refuse":
        raise Conflict(f"There is a file {known!r} already. Replace it, or keep both.")
    if body.if_exists == "replace":
        return f"{UPLOADS}/{known}"
    stem, dot, ending = name.rpartition(".")
    options = (f"{stem} ({n}).{ending}" if dot and stem else f"{name} ({n})" for n in range(2, 999))
    return f"{UPLOADS}/{next(o for o in options if o.casefold() not in taken)}"
