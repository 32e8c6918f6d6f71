"""Digest routes: what a person may decide on, team by team, and decisions on many at once."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.decision_presenters import digest_view
from agiraph.api.decision_views import DecidedView, DigestView
from agiraph.api.deps import ApiDep, CallerDep, Idempotent, PersonDep, check_owner
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.ids import PersonId, TeamId
from agiraph.services.lifecycle import digest
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("inbox")
MOST_TEAMS = 1000

Ids = Annotated[list[str], Field(max_length=digest.MOST_IDS)]


class DigestDecisions(BaseModel):
    """Decisions on entries of the digest; all of them are made, or none."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"team": "beans", "confirm": "all"}},
    )

    team: str | None = Field(
        default=None, max_length=200, description="What `all` means; null: all teams."
    )
    confirm: Literal["all"] | Ids = Field(
        default_factory=list[str],
        description="Knowledge, notes and triggers. `all` never confirms a request: a way out is "
        "answered by itself.",
    )
    reject: Ids = Field(
        default_factory=list[str], description="Knowledge to remove, requests to deny."
    )
    always: Ids = Field(
        default_factory=list[str],
        description="Requests to approve, with all later calls of their kind. Needs the scope "
        "`admin`.",
    )
    stop: Ids = Field(default_factory=list[str], description="Triggers to cancel.")
    as_of: datetime | None = Field(
        default=None, description="Of the digest that was shown: `all` confirms nothing newer."
    )


@router.get("/inbox/digest", responses=documented(404))
async def get_digest(
    api: ApiDep,
    person: PersonDep,
    team: Annotated[str, Query(max_length=200, description="Only this team.")] = "",
    words: Annotated[bool, Query(description="Return the exact words of every entry.")] = False,
) -> list[DigestView]:
    """List what the person may decide on, for each team that has something."""

    def look(tx: Tx) -> list[DigestView]:
        found = [digest.of_team(tx, t, person_id=person) for t in _teams(tx, team, person)]
        return [digest_view(tx, one, words=words) for one in found if one.entries]

    return await api.store.read(look)


@router.post("/inbox/digest", responses=documented(404, 409))
async def decide_digest(
    body: DigestDecisions, caller: CallerDep, person: PersonDep, idempotently: Idempotent
) -> DecidedView:
    """Decide on many entries at once: confirm, reject, allow for good, stop."""
    if body.always:
        check_owner(caller)
    decisions = digest.Decisions(
        confirm="all" if body.confirm == "all" else tuple(body.confirm),
        reject=tuple(body.reject),
        always=tuple(body.always),
        stop=tuple(body.stop),
    )

    def decide(tx: Tx) -> DecidedView:
        team_ids = _teams(tx, body.team or "", person)
        ids = digest.decide(tx, decisions, person_id=person, team_ids=team_ids, as_of=body.as_of)
        return DecidedView(ids=ids)

    return await idempotently(decide, status=200)  # pyright: ignore[reportReturnType]


def _teams(tx: Tx, name: str, person: PersonId) -> list[TeamId]:
    """Return the team of this name, or all teams that the person owns."""
    if name:
        return [teams.find(tx, name).id]
    return [t.id for t in teams.page(tx, limit=MOST_TEAMS) if t.owner_id == person]
