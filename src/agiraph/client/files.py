"""Files: a team's folder and notes."""

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

    async def list_memory(self, team: str, path: str = "") -> list[FileView]:
        """List a folder of the team's notes."""
        listing: FolderView = await self.get(FolderView, _below(team, "memory", path))
        return listing.entries

    async def read_memory(self, team: str, path: str) -> bytes:
        return await self.ask("GET", _below(team, "memory", path))


def _below(team: str, kind: str, path: str) -> str:
    return path_of("teams", team, kind, *(part for part in path.split("/") if part))
