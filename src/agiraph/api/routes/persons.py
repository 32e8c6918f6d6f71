"""Person routes: read and change the caller's own record, such as until when they are away
and in which time zone they live."""

from typing import Annotated, ClassVar

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.views import PersonView
from agiraph.domain.persons import Person
from agiraph.services.mail import absence
from agiraph.store import channels
from agiraph.store.persons import PERSONS
from agiraph.store.tx import Tx

router: APIRouter = api_router("access")

AWAY = (
    "Until when you are away, with an offset; null: you are back. Nothing is sent to your channels "
    "meanwhile. Questions wait in the inbox, and those with a time limit are given up after it."
)


ZONE = (
    "Your time zone, such as Europe/Berlin: times without an offset are read in it, and agents are "
    "told times in it. Empty: not known, which counts as UTC."
)


class PersonChanges(BaseModel):
    """What a person says about themselves."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"away_until": "2030-05-20T09:00:00+02:00"}}
    )

    away_until: Annotated[AwareDatetime | None, Field(description=AWAY)] = None
    zone: Annotated[str | None, Field(max_length=100, description=ZONE)] = None

    @model_validator(mode="after")
    def _says_something(self) -> "PersonChanges":
        if not self.model_fields_set:
            raise ValueError("set `away_until` or `zone`")
        return self


@router.get("/persons/me", responses=documented())
async def read_me(api: ApiDep, person: PersonDep) -> PersonView:
    """Return the person whose token this is."""
    return await api.store.read(lambda tx: _view(tx, PERSONS.get(tx, person)))


@router.patch("/persons/me", responses=documented())
async def change_me(body: PersonChanges, api: ApiDep, person: PersonDep) -> PersonView:
    """Say that you are away, or back, or in which time zone you live."""

    def change(tx: Tx) -> PersonView:
        if body.zone is not None:
            absence.live_in(tx, person, body.zone.strip())
        if "away_until" in body.model_fields_set:
            until = body.away_until
            _ = absence.come_back(tx, person) if until is None else absence.leave(tx, person, until)
        return _view(tx, PERSONS.get(tx, person))

    return await api.store.write(change)


def _view(tx: Tx, person: Person) -> PersonView:
    return PersonView(
        id=person.id,
        name=person.name,
        away_until=absence.until(tx, person.id),
        zone=person.zone,
        channels=[each.name for each in channels.every(tx) if each.person_id == person.id],
    )
