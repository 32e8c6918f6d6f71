"""Access: the tokens of the API, their scopes, and the audit of changes."""

from datetime import datetime
from typing import Literal, get_args

from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.value import value

Scope = Literal["read", "talk", "operate", "admin"]
"""Each scope includes those before it: read; send and answer; run teams; issue tokens."""
CLIENT_HEADER = "Agiraph-Client"
"""The header by which our MCP server says that a program wrote the words of a request."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
TokenKind = Literal["token", "session", "link"]
"""token: of a program; session: of a browser; link: exchanged once for a session."""


@value
class Token:
    """The right to use the API. Only the digest of its secret is stored."""

    id: str
    person_id: PersonId
    """The person in whose name its bearer acts."""
    kind: TokenKind
    name: str
    digest: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    """When it was last used, to within ten minutes; of a link, when it was used up."""
    revoked_at: datetime | None = None
    link_id: str | None = None
    """Of a session, the sign-in link that it was made from; None if it is older than this field."""


@value
class AuditEntry:
    """One entry of the audit: who sent which changing request, and the status of the response."""

    id: str
    at: datetime
    who: str
    """The token that was used."""
    person_id: PersonId
    """The person whose token it is."""
    method: str
    path: str
    status: int


def covers(has: Scope, wanted: Scope) -> bool:
    """Tell whether a token with scope `has` may do what needs scope `wanted`."""
    return SCOPES.index(has) >= SCOPES.index(wanted)
