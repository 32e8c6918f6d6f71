"""Access: the person, tokens, sign-in links, audit log, health checks and the emergency stop."""

from datetime import datetime

from agiraph.api.server_views import (
    EmergencyStopView,
    ExaminationView,
    HealthView,
    IssuedToken,
    LinkView,
    OperationsView,
    ProviderStatusView,
    ResumedView,
    StatusView,
    TokenView,
    WorkStopView,
)
from agiraph.api.views import PersonView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.access import AuditEntry, Scope


class AccessCalls(Connection):
    async def me(self) -> PersonView:
        """Return the person whose token this client has."""
        return await self.get(PersonView, "/persons/me")

    async def set_away(self, until: datetime | None) -> PersonView:
        """Say that the person is away until this moment, which has an offset; None: back."""
        body = {"away_until": None if until is None else until.isoformat()}
        return self.read(PersonView, await self.ask("PATCH", "/persons/me", body=body))

    async def set_zone(self, zone: str) -> PersonView:
        """Say in which time zone the person lives, by its IANA name; empty: not known."""
        body = {"zone": zone}
        return self.read(PersonView, await self.ask("PATCH", "/persons/me", body=body))

    async def tokens(self) -> list[TokenView]:
        """List the tokens and sessions that are valid now."""
        return await self.get(list[TokenView], "/tokens")

    async def create_token(
        self, name: str, *, scope: Scope = "read", days: int | None = None
    ) -> IssuedToken:
        """Create a token for a program. Only this response contains its secret."""
        body = {"name": name, "scope": scope, "days": days}
        return await self.post(IssuedToken, "/tokens", body)

    async def revoke_token(self, token: str) -> None:
        await self.ask("DELETE", path_of("tokens", token))

    async def create_link(self) -> LinkView:
        """Create a link that signs a browser in, once."""
        return await self.post(LinkView, "/tokens/link")

    async def audit(
        self,
        *,
        after: str = "",
        limit: int = 100,
        newest: bool = False,
        who: str = "",
        path: str = "",
    ) -> list[AuditEntry]:
        """List who changed what, oldest first or newest first; `who` is a part of the token's name
        and `path` the beginning of the path."""
        only = {"newest": "true" if newest else "false", "who": who, "path": path}
        query = {"after": after, "limit": limit, **only}
        return self.read(list[AuditEntry], await self.ask("GET", "/audit", query=query))

    async def stop_everything(self) -> EmergencyStopView:
        """Cancel the open work of all teams and end every process they started."""
        return await self.post(EmergencyStopView, "/stop")

    async def operations(self) -> OperationsView:
        """Return the queues, the workers, the storage and the sandbox of the server."""
        return await self.get(OperationsView, "/operations")

    async def provider_status(self) -> list[ProviderStatusView]:
        """Return the last calls of each provider of models, and what it cost today."""
        return await self.get(list[ProviderStatusView], "/operations/providers")

    async def examine(self) -> ExaminationView:
        """Make all health checks of `agiraph doctor` on the server."""
        return await self.post(ExaminationView, "/operations/doctor")

    async def stop_all_work(self) -> WorkStopView:
        """Interrupt all work of all teams until it is resumed. Nothing is cancelled."""
        return await self.post(WorkStopView, "/operations/stop")

    async def resume_all_work(self) -> ResumedView:
        """End the emergency stop."""
        return await self.post(ResumedView, "/operations/resume")

    async def alive(self) -> HealthView:
        return await self.get(HealthView, "/healthz")

    async def ready(self) -> HealthView:
        return await self.get(HealthView, "/readyz")

    async def status(self) -> StatusView:
        """Return the server's version, its failing tasks and how it confines commands."""
        return await self.get(StatusView, "/status")

    async def metrics(self) -> str:
        """Return the metrics in the Prometheus text format."""
        return (await self.ask("GET", "/metrics")).decode()

    async def openapi(self) -> bytes:
        """Return the OpenAPI document."""
        return await self.ask("GET", "/openapi.json")
