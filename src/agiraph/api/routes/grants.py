"""Grant routes: what persons have allowed for longer than one call, and how they end it."""

from datetime import UTC, datetime
from typing import ClassVar, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.decision_presenters import grant_view
from agiraph.api.decision_views import GrantView
from agiraph.api.deps import ApiDep, Idempotent, PersonDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.services.lifecycle import answers
from agiraph.services.lifecycle import answers as verbs
from agiraph.store import grants, teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("grants")


class NewGrant(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"kind": "read", "pattern": "docs.python.org"}},
    )

    kind: Literal["read", "reach", "packages", "tool", "command", "trust"] = Field(
        description="read: open any address of a host. reach: commands may talk to a host, for 30 "
        "days unless `until` says otherwise. packages: install a package. tool: call a tool. "
        "command: run these exact words. trust: what a program or a host says, or what lies in a "
        "given folder, counts as the team's."
    )
    pattern: str = Field(
        min_length=1,
        max_length=verbs.MAX_PATTERN,
        description="The host (`*.` before it includes its subdomains), the exact command, the "
        "name of the tool, package or program, or `folder:NAME` for a folder of the team.",
    )
    until: datetime | None = Field(default=None, description="When it ends; null: never.")
    home: bool = Field(default=False, description="Whether it holds for all teams of this home.")


@router.get("/teams/{team}/grants", responses=documented(404))
async def list_grants(team: str, api: ApiDep) -> list[GrantView]:
    """List the grants of a team and of the whole home, newest first, revoked ones too."""

    def look(tx: Tx) -> list[GrantView]:
        found = grants.listed(tx, teams.find(tx, team).id)
        return [grant_view(grant, tx.now) for grant in found]

    return await api.store.read(look)


@router.post("/teams/{team}/grants", status_code=201, responses=documented(404, 409))
async def create_grant(
    team: str, body: NewGrant, person: PersonDep, idempotently: Idempotent
) -> GrantView:
    """Allow something from now on. Open requests that it covers are approved."""

    def make(tx: Tx) -> GrantView:
        found = teams.find(tx, team)
        until = body.until
        if until is not None and until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        made = answers.allow(
            tx,
            kind=body.kind,
            pattern=body.pattern,
            person_id=person,
            team_id=None if body.home else found.id,
            until=until,
        )
        return grant_view(made, tx.now)

    return await idempotently(make, status=201)  # pyright: ignore[reportReturnType]


@router.delete("/teams/{team}/grants/{grant}", responses=documented(404, 409))
async def revoke_grant(team: str, grant: str, api: ApiDep) -> GrantView:
    """Revoke a grant: the next such call asks again. The grant stays in the list."""

    def end(tx: Tx) -> GrantView:
        return grant_view(verbs.revoke_grant(tx, grant, team_id=teams.find(tx, team).id), tx.now)

    return await api.store.write(end)
