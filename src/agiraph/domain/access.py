"""Access: who may come in by the API, and how far."""

from datetime import datetime
from typing import Literal, get_args

from agiraph.domain.value import value

Scope = Literal["read", "talk", "operate", "admin"]
"""Each may do what those before it may: look, speak and answer, run teams, hand out passes."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
TokenKind = Literal["token", "session", "link"]
"""A program's token, a browser's session, and the link that begins one, good for a single use."""


@value
class Token:
    """What lets somebody in. Of its secret only the digest is kept."""

    id: str
    kind: TokenKind
    name: str
    digest: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None


@value
class AuditEntry:
    """One line of the audit: who changed what, and what came of it."""

    id: str
    at: datetime
    who: str
    method: str
    path: str
    status: int


def covers(has: Scope, wanted: Scope) -> bool:
    return SCOPES.index(has) >= SCOPES.index(wanted)
