"""Persons: the rows of people, and the person whom a team belongs to."""

from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.domain.persons import OWNER, Person
from agiraph.core.store.rows import Table
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

PERSONS = Table("persons", Person)


def owner(tx: Tx) -> Person:
    """Return the owner of this installation, whose row every database has."""
    return PERSONS.get(tx, OWNER)


def zone_of(tx: Tx, person_id: PersonId) -> str:
    """Return the time zone of a person: that of the times they name and are told."""
    return PERSONS.get(tx, person_id).zone or "UTC"


def zone_of_team(tx: Tx, team_id: TeamId) -> str:
    """Return the time zone of the person whom a team belongs to."""
    return zone_of(tx, owner_of(tx, team_id))


def owner_of(tx: Tx, team_id: TeamId) -> PersonId:
    """Return the person whom a team belongs to."""
    return TEAMS.get(tx, team_id).owner_id
