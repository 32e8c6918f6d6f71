"""Extensions: own tools, engines, channels, providers and skills, and the consent to them."""

from agiraph.api.extension_views import ExtensionView, SkillView
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
