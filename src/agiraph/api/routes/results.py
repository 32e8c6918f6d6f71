"""Result routes: what a team has delivered, the files that a text names, and the search over all
that a person's teams have said, done, written and learned."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, PersonDep, Query
from agiraph.api.file_views import FoundPathView, FoundView, ResultPage, ResultView
from agiraph.api.problems import documented
from agiraph.api.routes.folders import change_view
from agiraph.api.routing import Router
from agiraph.api.views import FileView
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.found import Found
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.home import file_search
from agiraph.core.home.file_search import PathLookup
from agiraph.core.home.node_folder import PUBLISHED
from agiraph.core.services import search
from agiraph.core.services.board import labels, texts
from agiraph.core.store import nodes, teams
from agiraph.core.store.lists import results as rows
from agiraph.core.store.lists.results import Before
from agiraph.core.store.lists.search import newest_tasks
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import from_micros, to_micros
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts.folder_changes import FolderChange
from agiraph.core.store.tx import Tx

Kind = Literal["result", "changes"]
MOST_CHANGES = 20
"""Changes that one entry lists; it counts all of them."""
_LATEST = datetime.max.replace(tzinfo=UTC)
_LAST_ID = "~"
"""Greater than every id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A delivered result of a node, or what the agent of a node changed in given folders."""

    kind: Kind
    at: datetime
    node: WorkNode
    parent: WorkNode | None
    label: Label
    """Whose words the result may hold, besides those of the team."""
    changes: tuple[FolderChange, ...] = ()
    change_count: int = 0

    @property
    def cursor(self) -> str:
        """The pagination cursor of this entry."""
        return f"{to_micros(self.at)}-{self.kind}-{self.node.id}"


def _page(
    tx: Tx, team_id: TeamId, *, kind: Kind | None, before: str, limit: int, with_parts: bool
) -> list[Entry]:
    """Return at most `limit` entries, newest first, after the entry whose cursor is `before`."""
    results_before, changes_before = _read_cursor(before)
    found: list[Entry] = []
    if kind != "changes":
        nodes = rows.delivered(
            tx, team_id, before=results_before, limit=limit, with_parts=with_parts
        )
        found += [_result(tx, node) for node in nodes if node.ended_at is not None]
    if kind != "result":
        groups = rows.changed(tx, team_id, before=changes_before, limit=limit)
        found += [_changes(tx, team_id, group) for group in groups]
    found.sort(key=lambda e: (e.at, e.kind == "result", e.node.id), reverse=True)
    return found[:limit]


def _read_cursor(cursor: str) -> tuple[Before, Before]:
    """Return where the results and where the changes of the next page begin. Of the same time,
    results come before changes."""
    if not cursor:
        return Before(_LATEST, _LAST_ID), Before(_LATEST, _LAST_ID)
    micros, _, rest = cursor.partition("-")
    kind, _, node_id = rest.partition("-")
    if not (micros.isascii() and micros.isdecimal() and len(micros) < 18 and node_id):
        raise Refused(f"{cursor[:80]!r} is not a valid cursor; use the `next` of a page.")
    at = from_micros(int(micros))
    if kind == "result":
        return Before(at, node_id), Before(at, _LAST_ID)
    return Before(at, ""), Before(at, node_id)


def _result(tx: Tx, node: WorkNode) -> Entry:
    assert node.ended_at is not None
    return Entry(
        kind="result",
        at=node.ended_at,
        node=node,
        parent=_parent(tx, node),
        label=labels.of_nodes(tx, [node.id]),
    )


def _changes(tx: Tx, team_id: TeamId, group: rows.Changed) -> Entry:
    node = NODES.get(tx, group.node_id)
    return Entry(
        kind="changes",
        at=group.at,
        node=node,
        parent=_parent(tx, node),
        label=labels.of_nodes(tx, [node.id]),
        changes=tuple(rows.changes_of(tx, team_id, node.id, limit=MOST_CHANGES)),
        change_count=group.files,
    )


def _parent(tx: Tx, node: WorkNode) -> WorkNode | None:
    return None if node.parent_id is None else NODES.get(tx, node.parent_id)


router: Router = Router("results")
search_router: Router = Router("search")

TEXT_CHARACTERS = 1500
MOST_FILES = 20
"""Files that one entry lists; it counts all of them."""
MOST_PATHS = 50
NODES_LOOKED_IN = 12
"""A path without a node is looked for in the folders of this many nodes, the newest first."""
NEWEST_TEAMS, NEWEST_TASKS = 200, 400
"""How many of the newest teams' uploads, and of the newest tasks' files, a search reads."""


@router.get("/teams/{team}/results", responses=documented(404))
async def list_results(
    team: str,
    api: ApiDep,
    kind: Kind | None = None,
    parts: Annotated[
        bool, Query(description="Whether to list work that is a part of other work, too.")
    ] = True,
    before: Annotated[str, Query(max_length=200, description="The `next` of the page.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
) -> ResultPage:
    """List what a team has delivered, newest first: results with their files, and changes in the
    folders that it was given."""

    def look(tx: Tx) -> tuple[TeamId, list[Entry], dict[str, Agent]]:
        found = teams.find(tx, team)
        page = _page(tx, found.id, kind=kind, before=before, limit=limit + 1, with_parts=parts)
        return found.id, page, {agent.id: agent for agent in teams.everyone(tx, found.id)}

    team_id, page, agents = await api.store.read(look)
    shown = page[:limit]
    listed = await asyncio.to_thread(_files, api, team_id, shown)
    views = [_view(e, files, agents) for e, files in zip(shown, listed, strict=True)]
    return ResultPage(results=views, next=shown[-1].cursor if len(page) > limit else None)


def _files(api: Api, team_id: TeamId, entries: Sequence[Entry]) -> list[list[FileView]]:
    """Return the first published files of each entry that are still there."""
    with api.home.team(team_id).folder as folder:
        found: list[list[FileView]] = []
        for entry in entries:
            manifest = entry.node.manifest if entry.kind == "result" else {}
            # Files at the top first: they are what the others belong to.
            names = sorted(manifest, key=lambda name: (name.count("/"), name))[:MOST_FILES]
            paths = [f"nodes/{entry.node.id}/{PUBLISHED}/{name}" for name in names]
            known = [(path, folder.find(path)) for path in paths]
            found.append([FileView.of(e, path=path) for path, e in known if e is not None])
        return found


def _view(entry: Entry, files: list[FileView], agents: dict[str, Agent]) -> ResultView:
    node, is_result = entry.node, entry.kind == "result"
    text = (node.result or "") if is_result else ""
    agent = agents.get(node.assignee_id or "")
    return ResultView.of(
        node,
        kind=entry.kind,
        at=entry.at,
        node_id=node.id,
        title=texts.subject_of(node),
        parent_title=None if entry.parent is None else texts.subject_of(entry.parent),
        agent_id=node.assignee_id,
        agent=None if agent is None else agent.name,
        text=text[:TEXT_CHARACTERS],
        is_whole=len(text) <= TEXT_CHARACTERS,
        doubts=node.doubts if is_result else (),
        sources=entry.label.sources,
        files=files,
        file_count=len(node.manifest) if is_result else 0,
        changes=[change_view(change) for change in entry.changes],
        change_count=entry.change_count,
    )


@router.get("/teams/{team}/paths", responses=documented(404))
async def find_paths(
    team: str,
    api: ApiDep,
    text: Annotated[
        list[Annotated[str, Field(max_length=400)]],
        Query(min_length=1, max_length=MOST_PATHS, description="Paths as a message names them."),
    ],
    node: Annotated[str, Query(max_length=200, description="The work that named them.")] = "",
) -> list[FoundPathView]:
    """Find the files and folders of a team that a text names, as its agents name them: below the
    team's folder, or below the scratch or published folder of its last work. What does not exist
    is left out."""

    def look(tx: Tx) -> tuple[TeamId, list[NodeId]]:
        found = teams.find(tx, team)
        own = [node_id] if (node_id := NodeId(node)) else []
        latest = nodes.newest(tx, found.id, limit=NODES_LOOKED_IN)
        return found.id, [*own, *(one for one in latest if one not in own)]

    team_id, looked_in = await api.store.read(look)
    return await asyncio.to_thread(_find, api, team_id, looked_in, text)


def _find(
    api: Api, team_id: TeamId, looked_in: list[NodeId], named: list[str]
) -> list[FoundPathView]:
    views: list[FoundPathView] = []
    with api.home.team(team_id).folder as folder:
        lookup = PathLookup(folder, str(api.home.path / "teams" / team_id), looked_in)
        for text in dict.fromkeys(named):
            try:
                found = lookup.find(text)
            except Refused:  # a path that cannot exist, such as one with a zero byte
                continue
            if found is not None:
                views.append(FoundPathView.of(found, text=text))
    return views


@search_router.get("/search", responses=documented(404))
async def find(
    api: ApiDep,
    person: PersonDep,
    query: Annotated[str, Query(min_length=1, max_length=500)],
    team: str = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 8,
) -> list[FoundView]:
    """Search teams, agents, work, files, messages, notes, insights, pages, reports and steps of
    threads for all words of a query: in one team or in all, at most `limit` of a kind. Of files the
    name is compared, and the text of the newest short ones."""

    words = search.words_of(query)

    def read(tx: Tx) -> tuple[list[Found], list[TeamId], list[tuple[TeamId, NodeId]]]:
        team_id = teams.find(tx, team).id if team else None
        found = search.find(tx, query, person_id=person, team_id=team_id, limit=limit)
        team_ids = [team_id] if team_id else teams.newest(tx, NEWEST_TEAMS)
        return found, team_ids, newest_tasks(tx, team=team_id, limit=NEWEST_TASKS)

    found, team_ids, tasks = await api.store.read(read)
    files = await asyncio.to_thread(
        file_search.find, api.home, team_ids, tasks, words, limit=limit if words else 0
    )

    def join(tx: Tx) -> list[FoundView]:
        # Labels are read after the files. A file's label is committed before the file is
        # written, so no text is shown without its label.
        complete = search.with_files(tx, found, files, words=words, limit=limit)
        names = {each: TEAMS.find(tx, each) for each in {one.team_id for one in complete}}
        return [
            FoundView.of(
                one,
                team_name=known.name,
                preview=search.preview(one.text, query),
                sources=one.label.sources,
            )
            for one in complete
            if (known := names[one.team_id])
        ]

    return await api.store.read(join)
