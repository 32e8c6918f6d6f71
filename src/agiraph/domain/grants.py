"""Grants: what a person has allowed for longer than one call.

Only a person makes a grant, and only the database holds them: no argument of a call and no file
in a team's home grants anything. A grant names exactly what it allows, so a changed command asks
again.
"""

from datetime import datetime, timedelta
from typing import Literal

from agiraph.domain.ids import MessageId, PersonId, TeamId
from agiraph.domain.value import value

GrantKind = Literal["read", "reach", "packages", "tool", "command", "trust"]
"""read: open any address of a host. reach: commands may talk to a host. packages: install a package
of this name. tool: call a tool. command: run these exact words. trust: what a program or a host
says no longer counts as foreign."""

REACH_LASTS = timedelta(days=30)
"""How long commands may talk to a host, unless the person names another end."""


@value
class Grant:
    id: str
    kind: GrantKind
    pattern: str
    """What it allows: a host (`*.` before it includes its subdomains), the exact command, the name
    of a tool, of a package or of a program."""
    person_id: PersonId
    created_at: datetime
    team_id: TeamId | None = None
    """None: it holds for all teams of this home."""
    until: datetime | None = None
    uses_left: int | None = None
    """How many calls it still allows; None: any number."""
    used: int = 0
    """How many calls it has allowed."""
    from_ask: MessageId | None = None
    """The request that the person answered with it."""
    revoked_at: datetime | None = None

    def allows(self, kind: GrantKind, target: str, *, now: datetime) -> bool:
        """Whether the grant is in force and names this target."""
        is_spent = self.uses_left is not None and self.uses_left <= 0
        is_over = self.until is not None and self.until <= now
        if self.kind != kind or self.revoked_at is not None or is_spent or is_over:
            return False
        if kind in ("read", "reach") and self.pattern.startswith("*."):
            return target == self.pattern[2:] or target.endswith(self.pattern[1:])
        return target == self.pattern
