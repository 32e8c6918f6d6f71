"""Access: tokens, sign-in links, the audit; whether the server is well, and stopping it all."""

from agiraph.api.views import Health, IssuedToken, LinkView, Stopped, TokenView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.access import AuditEntry, Scope


class AccessCalls(Connection):
    async def tokens(self) -> list[TokenView]:
        """Every token and session that opens something now."""
        return await self.get(list[TokenView], "/tokens")

    async def create_token(
        self, name: str, *, scope: Scope = "read", days: int | None = None
    ) -> IssuedToken:
        """A token for a program; its secret is shown this once."""
        body = {"name": name, "scope": scope, "days": days}
        return await self.post(IssuedToken, "/tokens", body)

    async def revoke_token(self, token: str) -> None:
        await self.ask("DELETE", path_of("tokens", token))

    async def create_link(self) -> LinkView:
        """A link that signs a browser in, once."""
        return await self.post(LinkView, "/tokens/link")

    async def audit(self, *, after: str = "", limit: int = 100) -> list[AuditEntry]:
        """Who changed what, oldest first."""
        return await self.get(list[AuditEntry], "/audit", after=after, limit=limit)

    async def stop_everything(self) -> Stopped:
        """Cancel everything of all teams at once, and end every process they started."""
        return await self.post(Stopped, "/stop")

    async def alive(self) -> Health:
        return await self.get(Health, "/healthz")

    async def ready(self) -> Health:
        return await self.get(Health, "/readyz")

    async def metrics(self) -> str:
        """What Prometheus reads."""
        return (await self.ask("GET", "/metrics")).decode()

    async def openapi(self) -> bytes:
        """The description of everything the server offers."""
        return await self.ask("GET", "/openapi.json")
