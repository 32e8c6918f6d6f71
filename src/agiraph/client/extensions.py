"""Extensions: own tools, engines, channels, providers, skills and MCP servers, and the consent to
them."""

from agiraph.api.extension_views import ExtensionView, SkillView
from agiraph.api.mcp_views import McpServerDetails, McpServerView
from agiraph.client.connection import Connection, path_of


class ExtensionCalls(Connection):
    async def extensions(self) -> list[ExtensionView]:
        """List the files and packages of the person, with the state of each one."""
        return await self.get(list[ExtensionView], path_of("extensions"))

    async def enable_extension(self, id: str, sha256: str) -> ExtensionView:
        """Enable an extension with exactly this content: its code then runs in the runtime."""
        body = {"id": id, "sha256": sha256}
        return await self.post(ExtensionView, path_of("extensions", "enable"), body)

    async def disable_extension(self, id: str) -> None:
        await self.ask("POST", path_of("extensions", "disable"), body={"id": id})

    async def skills(self) -> list[SkillView]:
        """List the skills of the home, of the teams, and of the folders that teams were given."""
        return await self.get(list[SkillView], path_of("skills"))

    async def enable_skill(self, id: str, sha256: str) -> SkillView:
        """Enable a skill with exactly these files: agents then follow it."""
        body = {"id": id, "sha256": sha256}
        return await self.post(SkillView, path_of("skills", "enable"), body)

    async def disable_skill(self, id: str) -> None:
        await self.ask("POST", path_of("skills", "disable"), body={"id": id})

    async def mcp_servers(self) -> list[McpServerView]:
        """List the MCP servers of the server's settings."""
        return await self.get(list[McpServerView], path_of("mcp-servers"))

    async def mcp_server(self, name: str) -> McpServerDetails:
        """Return all that a person confirms of an MCP server."""
        return await self.get(McpServerDetails, path_of("mcp-servers", name))

    async def confirm_mcp_server(self, name: str, sha256: str) -> McpServerDetails:
        """Accept what was shown of an MCP server under this hash."""
        body = {"sha256": sha256}
        return await self.post(McpServerDetails, path_of("mcp-servers", name, "confirm"), body)

    async def ask_mcp_server(self, name: str) -> McpServerDetails:
        """Start an MCP server and ask for its tools."""
        return await self.post(McpServerDetails, path_of("mcp-servers", name, "ask"), {})
