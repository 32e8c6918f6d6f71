"""Decisions: API calls that list and make grants, read the digest and decide on its entries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from agiraph.api.decision_views import DecidedView, DigestView, GrantView
from agiraph.client.connection import Connection, path_of
from agiraph.domain.grants import GrantKind


class DecisionCalls(Connection):
    async def grants(self, team: str) -> list[GrantView]:
        """List the grants of a team and of the whole home, newest first."""
        return await self.get(list[GrantView], path_of("teams", team, "grants"))

    async def grant(
        self,
        team: str,
        kind: GrantKind,
        pattern: str,
        *,
        until: datetime | None = None,
        home: bool = False,
    ) -> GrantView:
        """Allow something from now on, in a team or (`home`) in all teams."""
        end = None if until is None else until.isoformat()
        body = {"kind": kind, "pattern": pattern, "until": end, "home": home}
        return await self.make(GrantView, path_of("teams", team, "grants"), body)

    async def revoke_grant(self, team: str, grant: str) -> GrantView:
        """Revoke a grant: the next such call asks again."""
        path = path_of("teams", team, "grants", grant)
        return self.read(GrantView, await self.ask("DELETE", path))

    async def digest(self, team: str = "", *, words: bool = False) -> list[DigestView]:
        """List what the person may decide on; with `words`, in the exact words."""
        return await self.get(list[DigestView], "/inbox/digest", team=team, words=int(words))

    async def decide(
        self,
        *,
        team: str | None = None,
        confirm: Literal["all"] | Sequence[str] = (),
        reject: Sequence[str] = (),
        always: Sequence[str] = (),
        stop: Sequence[str] = (),
        as_of: datetime | None = None,
    ) -> DecidedView:
        """Decide on many entries of the digest at once: all of it, or nothing."""
        body = {
            "team": team,
            "confirm": confirm if confirm == "all" else list(confirm),
            "reject": list(reject),
            "always": list(always),
            "stop": list(stop),
            "as_of": None if as_of is None else as_of.isoformat(),
        }
        return await self.make(DecidedView, "/inbox/digest", body)
