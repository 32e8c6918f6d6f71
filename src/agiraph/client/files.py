"""Files: a team's folder and notes."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Literal

from agiraph.api.file_views import (
    FileVersionView,
    FolderChangeView,
    FoundPathView,
    ResultPage,
    SavedView,
    UndoneView,
)
from agiraph.api.views import FileView, FolderView
from agiraph.client.connection import Connection, path_of


class FileCalls(Connection):
    async def list_files(self, team: str, path: str = "") -> list[FileView]:
        """List a folder of the team."""
        listing: FolderView = await self.get(FolderView, _below(team, "files", path))
        return listing.entries

    async def read_file(self, team: str, path: str, *, offset: int = 0) -> bytes:
        """Return a file of the team: at most eight MiB from the offset on."""
        return await self.ask("GET", _below(team, "files", path), query={"offset": offset})

    async def save_file(self, team: str, path: str, text: str, *, expected: str) -> SavedView:
        """Save a text of the team. `expected` is the SHA-256 of what it holds, `none` without a
        file; if it holds something else by now, nothing is saved."""
        body = {"text": text, "expected": expected}
        answer = await self.ask("PUT", _below(team, "files", path), body=body)
        return self.read(SavedView, answer)

    async def file_versions(self, team: str, path: str) -> list[FileVersionView]:
        """List the earlier contents of a text, newest first."""
        answer = await self.ask("GET", path_of("teams", team, "versions"), query={"path": path})
        return self.read(list[FileVersionView], answer)

    async def read_file_version(self, team: str, path: str, version: str) -> bytes:
        """Return an earlier content of a text."""
        address = path_of("teams", team, "versions", version)
        return await self.ask("GET", address, query={"path": path})

    async def restore_file_version(
        self, team: str, path: str, version: str, *, expected: str
    ) -> SavedView:
        """Bring an earlier content of a text back. `expected` is the SHA-256 of what it holds."""
        body = {"path": path, "expected": expected}
        address = path_of("teams", team, "versions", version, "restore")
        return await self.post(SavedView, address, body)

    async def upload_file(
        self,
        team: str,
        name: str,
        data: bytes,
        *,
        if_exists: Literal["refuse", "replace", "keep_both"] = "refuse",
    ) -> SavedView:
        """Upload a file for the team: all its agents may read it in `user_uploads/`."""
        body = {"name": name, "data": b64encode(data).decode(), "if_exists": if_exists}
        return await self.post(SavedView, path_of("teams", team, "uploads"), body)

    async def list_memory(self, team: str, path: str = "") -> list[FileView]:
        """List a folder of the team's notes."""
        listing: FolderView = await self.get(FolderView, _below(team, "memory", path))
        return listing.entries

    async def read_memory(self, team: str, path: str) -> bytes:
        return await self.ask("GET", _below(team, "memory", path))

    async def folder_changes(
        self, team: str, *, node: str | None = None, limit: int = 100
    ) -> list[FolderChangeView]:
        """List what was changed in the folders that the team was given, newest first."""
        of_node = {} if node is None else {"node": node}
        path = path_of("teams", team, "changes")
        return await self.get(list[FolderChangeView], path, limit=limit, **of_node)

    async def results(
        self, team: str, *, parts: bool = True, before: str = "", limit: int = 30
    ) -> ResultPage:
        """List what the team has delivered, newest first."""
        path = path_of("teams", team, "results")
        return await self.get(ResultPage, path, parts=parts, before=before, limit=limit)

    async def find_paths(self, team: str, texts: Sequence[str]) -> list[FoundPathView]:
        """Find the files and folders of the team that a text names."""
        path = path_of("teams", team, "paths")
        return await self.get(list[FoundPathView], path, text=list(texts))

    async def download_archive(self, team: str, path: str = "", *, results: bool = False) -> bytes:
        """Return a folder of the team, or all its published files, as a zip file."""
        query = {"path": path, "results": results}
        return await self.ask("GET", path_of("teams", team, "archive"), query=query)

    async def read_copy(self, team: str, change: str, side: Literal["before", "after"]) -> bytes:
        """Return what a file held before or after a change."""
        return await self.ask("GET", path_of("teams", team, "changes", change, side))

    async def undo(
        self, team: str, *, node: str | None = None, paths: Sequence[str] = (), force: bool = False
    ) -> UndoneView:
        """Put files back as they were before agents changed them."""
        body = {"node": node, "paths": list(paths), "force": force}
        return await self.post(UndoneView, path_of("teams", team, "undo"), body)


def _below(team: str, kind: str, path: str) -> str:
    return path_of("teams", team, kind, *(part for part in path.split("/") if part))
