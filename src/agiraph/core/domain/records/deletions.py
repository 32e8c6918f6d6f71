"""Deletions: teams that a person has deleted for good and that are still being removed."""

from datetime import datetime

from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.domain.value import value


@value
class Deletion:
    """A deleted team. The row is removed last, so that a crash leaves what is still to be done."""

    team_id: TeamId
    name: str
    person_id: PersonId
    """The person who deleted it."""
    created_at: datetime
