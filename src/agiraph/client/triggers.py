"""Triggers: schedules, events and webhooks that wake a team's agents."""

from collections.abc import Mapping
from typing import Any, Literal

from agiraph.api.views import CreatedTriggerView, TriggerView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.triggers import ActionType, Firing, TriggerType


class TriggerCalls(Connection):
    async def triggers(self, team: str) -> list[TriggerView]:
        return await self.get(list[TriggerView], path_of("teams", team, "triggers"))

    async def create_trigger(
        self,
        team: str,
        type: TriggerType,
        *,
        agent: str | None = None,
        config: Mapping[str, Any] | None = None,
        action: ActionType = "wake_agent",
        payload: Mapping[str, Any] | None = None,
    ) -> CreatedTriggerView:
        """Create a trigger that wakes an agent, by default the coordinator."""
        body = {
            "type": type,
            "agent": agent,
            "config": config or {},
            "action": action,
            "payload": payload or {},
        }
        return await self.make(CreatedTriggerView, path_of("teams", team, "triggers"), body)

    async def change_trigger(
        self,
        team: str,
        trigger: str,
        status: Literal["active", "paused"] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        action: ActionType | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> TriggerView:
        """Pause or resume a trigger, or change when it fires and what it does."""
        parts = {"status": status, "config": config, "action": action, "payload": payload}
        body = {name: part for name, part in parts.items() if part is not None}
        path = path_of("teams", team, "triggers", trigger)
        return self.read(TriggerView, await self.ask("PATCH", path, body=body))

    async def cancel_trigger(self, team: str, trigger: str) -> None:
        await self.ask("DELETE", path_of("teams", team, "triggers", trigger))

    async def firings(self, team: str, trigger: str, *, limit: int = 100) -> list[Firing]:
        """List a trigger's firings and skipped slots, newest first."""
        path = path_of("teams", team, "triggers", trigger, "firings")
        return await self.get(list[Firing], path, limit=limit)

    async def hit(
        self, trigger: str, secret: str, body: Any = None, *, delivery: str | None = None
    ) -> Firing:
        """Call a webhook as an outside system would. A repeated delivery id fires once."""
        headers = {"X-Agiraph-Secret": secret}
        if delivery is not None:
            headers["X-Delivery-Id"] = delivery
        path = path_of("hooks", trigger)
        return self.read(Firing, await self.ask("POST", path, body=body, headers=headers))
