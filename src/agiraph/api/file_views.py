"""File views: files, results, changes in given folders, and what a search over all finds."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.views import FileView, View
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.records.found import FoundKind
from agiraph.core.domain.work import NodeStatus


class FolderChangeView(View):
    id: str
    path: str = Field(description="The name of the folder, then the path below it.")
    kind: Literal["made", "changed", "removed"]
    node_id: str | None = Field(description="The node whose agent did it; null: it was undone.")
    created_at: datetime
    undone_at: datetime | None
    is_kept: bool = Field(description="Whether there is a copy, so that it can be undone.")


class UndoneView(View):
    restored: list[str]
    changed_since: list[str] = Field(
        description="Left as they are, because somebody else has changed them since."
    )
    not_kept: list[str] = Field(description="Left as they are, because there is no copy.")


class ResultView(View):
    kind: Literal["result", "changes"] = Field(
        description="The result of ended work, or changes in the folders that the team was given."
    )
    at: datetime
    node_id: str
    title: str
    parent_id: str | None
    parent_title: str | None = Field(description="The work that it is a part of.")
    agent_id: str | None
    agent: str | None = Field(description="The name of the agent that did the work.")
    thread_id: str | None
    status: NodeStatus
    text: str = Field(description="The beginning of the result; empty for changes.")
    is_whole: bool = Field(description="Whether `text` is all of it.")
    doubts: list[Doubt]
    sources: list[str] = Field(
        description="Whose words it may hold, if not the team's: search, page:HOST, …"
    )
    files: list[FileView] = Field(description="The first published files.")
    file_count: int
    changes: list[FolderChangeView] = Field(description="The last changes.")
    change_count: int


class ResultPage(View):
    results: list[ResultView]
    next: str | None = Field(description="The `before` of the next page; null: this is the last.")


class FoundPathView(View):
    text: str = Field(description="As it was asked for.")
    path: str = Field(description="Relative to the team's folder.")
    kind: Literal["file", "folder"]


class SavedView(View):
    path: str
    size: int
    hash: str = Field(description="The SHA-256 of the content; the `expected` of the next change.")


class FileVersionView(View):
    id: str
    at: datetime
    author: str = Field(
        description="`human`, an agent's name, `agiraph` for the text that a team began with, or "
        "empty if it is not known."
    )
    size: int
    is_labelled: bool = Field(description="Whether it held words from outside the team.")


class FoundView(View):
    """One thing that a search over all teams has found."""

    kind: FoundKind
    team_id: str
    team_name: str
    ref: str = Field(
        description="The id of a team, agent, node, message, insight or thread; a path, or a URL. "
        "For an answer, the id of its question."
    )
    title: str
    preview: str = Field(description="The part of its text around the first of the words.")
    agent_id: str | None
    node_id: str | None
    thread_id: str | None
    seq: int | None = Field(description="For a step, the number of its turn in the thread.")
    sources: list[str] = Field(description="Who wrote its words, if not the team.")
    at: datetime
