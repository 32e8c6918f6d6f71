"""Folder views: what clients get of changes in the folders that teams were given."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.view import View
from agiraph.domain.folders import Access


class GivenFolderView(View):
    name: str = Field(description="Its name in the team's paths: folders/<name>.")
    path: str
    access: Access


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
