"""Extensions: own tools, engines, channels, providers, skills and MCP servers, and the consent to
them."""

from agiraph.api.features.extension_views import ContentView, ExtensionView, SkillFile, SkillView
from agiraph.api.features.mcp_views import McpServerDetails, McpServerView
from agiraph.api.features.specialist_views import PromptPreview, SpecialistFile, SpecialistView
from agiraph.client.connection import Connection, path_of


class ExtensionCalls(Connection):
    async def extensions(self) -> list[ExtensionView]:
        """List the files and packages of the person, with the state of each one."""
        return await self.get(list[ExtensionView], path_of("extensions"))

    async def enable_extension(self, id: str, sha256: str) -> ExtensionView:
        """Enable an extension with exactly this content: its code then runs in the runtime."""
        body = {"id": id, "sha256": sha256}
        return await self.post(ExtensionView, path_of("extensions", "enable"), body)

    async def extension_content(self, id: str) -> ContentView:
        """Return the file of an extension in full, and what was enabled before."""
        return await self.get(ContentView, path_of("extensions", "content"), id=id)

    async def disable_extension(self, id: str) -> None:
        await self.ask("POST", path_of("extensions", "disable"), body={"id": id})

    async def skills(self) -> list[SkillView]:
        """List the skills of the home, of the teams, and of the folders that teams were given."""
        return await self.get(list[SkillView], path_of("skills"))

    async def skill_content(self, id: str) -> ContentView:
        """Return the files of a skill in full, and those that were enabled before."""
        return await self.get(ContentView, path_of("skills", "content"), id=id)

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

    async def skill_file(self, id: str) -> SkillFile:
        """Return the SKILL.md of a skill."""
        return await self.get(SkillFile, path_of("skills", "file"), id=id)

    async def write_skill_file(self, id: str, text: str) -> SkillView:
        """Write the SKILL.md of a skill in the home; it is off until it is enabled again."""
        body = {"id": id, "text": text}
        return self.read(SkillView, await self.ask("PUT", path_of("skills", "file"), body=body))

    async def specialists(self) -> list[SpecialistView]:
        """List the specialists that coordinators can hire."""
        return await self.get(list[SpecialistView], path_of("specialists"))

    async def specialist(self, name: str) -> SpecialistFile:
        """Return a specialist with its file."""
        return await self.get(SpecialistFile, path_of("specialists", name))

    async def write_specialist(self, name: str, text: str) -> SpecialistFile:
        """Write a specialist's file into the home."""
        path = path_of("specialists", name)
        return self.read(SpecialistFile, await self.ask("PUT", path, body={"text": text}))

    async def delete_specialist(self, name: str) -> None:
        """Remove a specialist's file from the home; a built-in one is used again."""
        await self.ask("DELETE", path_of("specialists", name))

    async def try_specialist(
        self, name: str, *, team: str, task: str, text: str | None = None
    ) -> PromptPreview:
        """Return what the specialist's model would be shown for a task. No model is called."""
        body = {"team": team, "task": task, "text": text}
        return await self.post(PromptPreview, path_of("specialists", name, "try"), body)
