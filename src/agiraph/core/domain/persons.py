"""Persons: the people who use this installation. Exactly one exists: the owner.

Messages, nodes, tokens and the audit name people by their id, which is also their address.
"""

from datetime import datetime
from typing import Literal, TypeGuard

from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.value import value

PersonRole = Literal["owner"]
HUMAN_ADDRESS = "human"
"""The word by which agents address a person: it means the person whom their work is for."""
OWNER = PersonId("human")
"""The id of the person who set up this installation and holds its admin token."""
_PREFIX = "person_"


@value
class Person:
    id: PersonId
    name: str
    role: PersonRole
    created_at: datetime
    away_until: datetime | None = None
    """Until when they are away, if they said so. See `services/mail/absence.py`."""
    zone: str = ""
    """The IANA name of their time zone; empty: not known, and taken as UTC."""


def is_person(address: str) -> TypeGuard[PersonId]:
    """Tell whether a sender, recipient or creator is a person, not an agent or the runtime.

    Decided by the form of the id, without the database: the owner's, or one of `new_id("person")`.
    """
    return address == OWNER or address.startswith(_PREFIX)


def means_a_person(word: str) -> bool:
    """Tell whether the recipient that an agent wrote is the word for a person."""
    return word.strip().lower() == HUMAN_ADDRESS
