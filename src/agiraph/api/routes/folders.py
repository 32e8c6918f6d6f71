"""Folder routes: what agents changed in the folders of a person, and undoing it."""

import asyncio
from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import Response

from agiraph.api.deps import Api, ApiDep, CallerDep, Limit, Query, check_owner
from agiraph.api.file_views import FolderChangeView, UndoneView
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import NodeId
from agiraph.core.services.board import folder_changes
from agiraph.core.services.board.folder_changes import Undo
from agiraph.core.store import teams
from agiraph.core.store.texts import folder_changes as rows
from agiraph.core.store.texts.folder_changes import FOLDER_CHANGES, FolderChange
from agiraph.core.store.tx import Tx
from agiraph.sandbox.folders.folder_history import FolderHistory, is_same_content

router: Router = Router("folders")


class UndoRequest(Body, example={"node": "node_1m7k8nh2bctv"}):
    """Which changes to undo: those of a node, those of some paths, or all of the team's agents."""

    node: str | None = Field(default=None, max_length=200)
    paths: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list[str],
        max_length=1000,
        description="As the changes name them: folder/path.",
    )
    force: bool = Field(
        default=False,
        description="Whether to put back files, too, that somebody else has changed since.",
    )


@router.read("/teams/{team}/changes", 404)
def list_folder_changes(
    tx: Tx,
    team: str,
    node: Annotated[str | None, Query(max_length=200)] = None,
    before: Annotated[str, Query(max_length=200, description="The last id of the page.")] = "",
    limit: Limit = 100,
) -> list[FolderChangeView]:
    """List what was changed in the folders that a team was given, newest first."""
    node_id = None if node is None else NodeId(node)
    found = teams.find(tx, team)
    page = rows.page(tx, found.id, node_id=node_id, before=before, limit=limit)
    return [change_view(change) for change in page]


COPY: dict[int | str, dict[str, object]] = {
    200: {"description": "The bytes of the file", "content": {"application/octet-stream": {}}}
}


@router.get(
    "/teams/{team}/changes/{change}/{side}",
    responses={**COPY, **documented(404)},
    response_class=Response,
)
async def read_copy(
    team: str, change: str, side: Literal["before", "after"], api: ApiDep
) -> Response:
    """Return what a file held before or after a change, as long as its copy is kept."""

    def look(tx: Tx) -> tuple[Team, FolderChange]:
        found, row = teams.find(tx, team), FOLDER_CHANGES.get(tx, change)
        if row.team_id != found.id:
            raise NotFound("change", change)
        return found, row

    owner, row = await api.store.read(look)
    version = row.before if side == "before" else row.after
    if version is None:
        raise NotFound("file", row.path, known=f"There was no such file {side} the change.")
    history = _history(api, owner, row.folder)
    data = await asyncio.to_thread(history.content, version)
    return Response(data, media_type="application/octet-stream")


@router.post("/teams/{team}/undo", responses=documented(404, 409))
async def undo_changes(team: str, body: UndoRequest, api: ApiDep, caller: CallerDep) -> UndoneView:
    """Put files back as they were before agents changed them. Needs the scope `admin`.

    A file that somebody else has changed since is left as it is and listed, unless `force` is set.
    """
    check_owner(caller, "To change a folder of this machine")

    def plan(tx: Tx) -> tuple[Team, list[Undo]]:
        found = teams.find(tx, team)
        node_id = None if body.node is None else NodeId(body.node)
        return found, folder_changes.plan_undo(tx, found.id, node_id=node_id, paths=body.paths)

    owner, planned = await api.store.read(plan)
    view = UndoneView(restored=[], changed_since=[], not_kept=[])
    for undo in planned:
        await _undo(api, owner, undo, view, force=body.force)
    return view


async def _undo(api: Api, team: Team, undo: Undo, view: UndoneView, *, force: bool) -> None:
    """Put one path back, and note in the view how that went."""
    name = f"{undo.folder}/{undo.path}"
    history = _history(api, team, undo.folder)
    held = await asyncio.to_thread(history.copy, undo.path)
    if held != undo.to and not force and not is_same_content(held, undo.expected):
        view.changed_since.append(name)
        return
    try:
        if held != undo.to:
            await asyncio.to_thread(history.restore, undo.path, undo.to)
    except NotFound:
        view.not_kept.append(name)
        return
    await api.store.write_first(folder_changes.settle, team.id, undo, held)
    view.restored.append(name)


def _history(api: Api, team: Team, folder: str) -> FolderHistory:
    given = next((one for one in team.folders if one.name == folder), None)
    if given is None:
        known = "It is no longer one of the team's folders; give it to the team again."
        raise NotFound("folder", folder, known=known)
    return FolderHistory(api.home.path / "teams" / team.id, given)


def change_view(change: FolderChange) -> FolderChangeView:
    kind: Literal["made", "changed", "removed"] = "changed"
    if change.before is None or change.after is None:
        kind = "made" if change.before is None else "removed"
    return FolderChangeView.of(
        change,
        path=f"{change.folder}/{change.path}",
        kind=kind,
        is_kept=change.before is None or not change.before.startswith("uncopied"),
    )
