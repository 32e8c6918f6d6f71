"""Absence: a person says until when they are away, and where they live, and the runtime acts on it.

While they are away, nothing is sent to their channels; the inbox shows everything at once.
Questions wait for them. A question with a time limit still ends at that limit, and its agent is
told until when the person is away. Times without an offset are read and shown in their zone.
"""

from datetime import datetime

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.persons import Person
from agiraph.core.domain.times.moments import MAX_AHEAD, parse_zone
from agiraph.core.services.mail import deliveries
from agiraph.core.store.teams import PERSONS
from agiraph.core.store.tx import Tx


def leave(tx: Tx, person_id: PersonId, until: datetime | None) -> Person:
    """Record until when a person is away; what was to be sent meanwhile waits. None: they are back,
    and what waited for them is sent now."""
    if until is not None and until <= tx.now:
        raise Refused(
            f"{until:%Y-%m-%d %H:%M} UTC is past; give a time in the future, or say that you are "
            "back."
        )
    if until is not None and until > tx.now + MAX_AHEAD:
        raise Refused(f"{until:%Y-%m-%d} is too far away; ten years is the most.")
    PERSONS.get(tx, person_id, lock=True)
    PERSONS.update(tx, person_id, away_until=until)
    deliveries.reschedule(tx, person_id)
    return PERSONS.get(tx, person_id)


def live_in(tx: Tx, person_id: PersonId, zone: str) -> Person:
    """Record a person's time zone; an empty name says that it is not known."""
    if zone:
        parse_zone(zone)
    if PERSONS.get(tx, person_id, lock=True).zone != zone:
        PERSONS.update(tx, person_id, zone=zone)
    return PERSONS.get(tx, person_id)


def until(tx: Tx, person_id: PersonId) -> datetime | None:
    """Return until when a person is away; None if they are here."""
    person = PERSONS.get(tx, person_id)
    away = person.away_until
    return away if away is not None and away > tx.now else None
