"""Files: what a team has in its folder and its notes."""

from agiraph.api.views import FileView, Listing
from agiraph.client.connection import Connection, path_of


class FileCalls(Connection):
    async def list_files(self, team: str, path: str = "") -> list[FileView]:
        """What is in a folder of the team's."""
        listing: Listing = await self.get(Listing, _below(team, "files", path))
        return listing.entries

    async def read_file(self, team: str, path: str, *, offset: int = 0) -> bytes:
        """A file of the team's, or its first eight MiB from the offset on."""
        return await self.ask("GET", _below(team, "files", path), query={"offset": offset})

    async def list_memory(self, team: str, path: str = "") -> list[FileView]:
        """What is in a folder of the team's notes."""
        listing: Listing = await self.get(Listing, _below(team, "memory", path))
        return listing.entries

    async def read_memory(self, team: str, path: str) -> bytes:
        return await self.ask("GET", _below(team, "memory", path))


def _below(team: str, kind: str, path: str) -> str:
    return path_of("teams", team, kind, *(part for part in path.split("/") if part))
