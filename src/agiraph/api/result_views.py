"""Result views: a team's deliverables and their files, as the API returns them."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.folder_views import FolderChangeView
from agiraph.api.view import View
from agiraph.api.views import FileView
from agiraph.domain.work import NodeStatus


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
    doubts: str | None
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
