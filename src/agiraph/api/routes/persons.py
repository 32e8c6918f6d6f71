"""Person routes: read and change the caller's own record, such as until when they are away."""

from typing import Annotated, ClassVar

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

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


class PersonChanges(BaseModel):
    """What a person says about themselves."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"away_until": "2030-05-20T09:00:00+02:00"}}
    )

    away_until: Annotated[AwareDatetime | None, Field(description=AWAY)]


@router.get("/persons/me", responses=documented())
async def read_me(api: ApiDep, person: PersonDep) -> PersonView:
    """Return the person whose token this is."""
    return await api.store.read(lambda tx: _view(tx, PERSONS.get(tx, person)))


@router.patch("/persons/me", responses=documented())
async def change_me(body: PersonChanges, api: ApiDep, person: PersonDep) -> PersonView:
    """Say that you are away, or back."""

    def change(tx: Tx) -> PersonView:
        if body.away_until is None:
            return _view(tx, absence.come_back(tx, person))
        return _view(tx, absence.leave(tx, person, body.away_until))

    return await api.store.write(change)


def _view(tx: Tx, person: Person) -> PersonView:
    return PersonView(
        id=person.id,
        name=person.name,
        away_until=absence.until(tx, person.id),
        channels=[each.name for each in channels.every(tx) if each.person_id == person.id],
    )
