"""Access: issue, check and revoke tokens, write the audit, and run requests at most once."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.ids import PersonId, new_id
from agiraph.core.domain.persons import Person
from agiraph.core.domain.provenance.access import AuditEntry, Scope, Token, TokenKind
from agiraph.core.store import access
from agiraph.core.store.access import AUDIT, PASSES
from agiraph.core.store.teams import PERSONS
from agiraph.core.store.tx import Tx

LINK_LIFE = timedelta(minutes=15)
"""How long a sign-in link can be used: short, because it signs in anybody who has it."""
SESSION_LIFE = timedelta(days=30)
"""How long a browser stays signed in."""
_TWO_PARTS = "2."
"""How the secret of a session begins. Browsers have sent older ones, which do not begin so, whole
to every port of this machine: they are valid no longer."""
RESPONSE_LIFE = timedelta(days=1)
"""How long the response to an Idempotency-Key is kept."""
USE_NOTED_EVERY = timedelta(minutes=10)
"""How exact the time of a token's last use is: each note is a write."""
MAX_KEY_CHARS = 200
_EPOCH = "epoch"


class Issued(NamedTuple):
    """A new token and its secret. The database keeps only the secret's digest."""

    token: Token
    secret: str


def digest(secret: str) -> str:
    # A plain hash is enough: secrets are random and long, so nobody can guess them offline.
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def issue(
    tx: Tx,
    person_id: PersonId,
    *,
    kind: TokenKind,
    name: str,
    scope: Scope,
    life: timedelta | None = None,
    link_id: str | None = None,
) -> Issued:
    """Create a token that acts in the name of a person. Without `life` it is valid until
    it is revoked. `link_id` is the sign-in link that a session is made from."""
    if not name.strip():
        raise Refused("Give the token a name: it is how you know it again in the list and audit.")
    # Only the digest is stored: a reader of the database or of a backup cannot sign in.
    secret = f"{_TWO_PARTS if kind == 'session' else ''}{secrets.token_urlsafe(32)}"
    token = Token(
        id=new_id("pass"),
        person_id=person_id,
        kind=kind,
        name=name.strip(),
        digest=digest(secret),
        scope=scope,
        created_at=tx.now,
        expires_at=None if life is None else tx.now + life,
        link_id=link_id,
    )
    return Issued(PASSES.insert(tx, token), secret)


def issue_link(tx: Tx, person_id: PersonId, *, life: timedelta = LINK_LIFE) -> Issued:
    """Create the token of a sign-in link, which a person's browser exchanges for a session."""
    return issue(tx, person_id, kind="link", name="sign-in link", scope="admin", life=life)


def redeem(tx: Tx, secret: str, *, name: str = "browser") -> Issued:
    """Exchange the secret of an unused sign-in link for a session, which gets this name."""
    found = access.by_digest(tx, digest(secret))
    if found is None or found.kind != "link" or not _is_valid(tx, found):
        raise Refused("This sign-in link is not known or too old. Make a new one: agiraph link")
    # Of two browsers with the same link, the update of one finds the link used.
    if not access.use_up(tx, found.id):
        raise Refused("This sign-in link was used before. Make a new one: agiraph link")
    return issue(
        tx,
        found.person_id,
        kind="session",
        name=name,
        scope=found.scope,
        life=SESSION_LIFE,
        link_id=found.id,
    )


class LinkUse(NamedTuple):
    """A sign-in link, and the session that it was exchanged for."""

    link: Token
    session: Token | None


def use_of_link(tx: Tx, identity: str, person_id: PersonId) -> LinkUse:
    """Return what became of a person's own sign-in link. Raise `NotFound` if it is another's."""
    link = PASSES.find(tx, identity)
    if link is None or link.kind != "link" or link.person_id != person_id:
        raise NotFound("sign-in link", identity, known="Make a new one.")
    return LinkUse(link, access.session_of(tx, identity))


class Bearer(NamedTuple):
    """A valid token, and the person in whose name its bearer acts."""

    token: Token
    person: Person


def authenticate(tx: Tx, secret: str) -> Bearer | None:
    """Return the token of this secret with its person; None if it is unknown, expired, revoked or
    a link."""
    found = access.by_digest(tx, digest(secret))
    # The secret of a link stands in a URL, and so in histories and logs:
    # it can only be redeemed, once.
    if found is None or found.kind == "link" or not _is_valid(tx, found):
        return None
    if found.kind == "session" and not secret.startswith(_TWO_PARTS):
        return None
    person = PERSONS.find(tx, found.person_id)
    return None if person is None else Bearer(found, person)


def _is_valid(tx: Tx, token: Token) -> bool:
    is_expired = token.expires_at is not None and token.expires_at <= tx.now
    return token.revoked_at is None and not is_expired


def is_use_due(token: Token, now: datetime) -> bool:
    """Tell whether the use of a token now should be noted."""
    return token.used_at is None or now - token.used_at >= USE_NOTED_EVERY


def note_use(tx: Tx, identity: str) -> None:
    """Note that a token was used now."""
    PASSES.update(tx, identity, used_at=tx.now)


def revoke(tx: Tx, identity: str) -> Token:
    """Make a token invalid from now on. Raise `NotFound` if there is none with this id."""
    if PASSES.find(tx, identity) is None:
        raise NotFound("token", identity, known="`agiraph tokens` lists them.")
    PASSES.update(tx, identity, revoked_at=tx.now)
    return PASSES.get(tx, identity)


def record_action(
    tx: Tx, *, who: str, person_id: PersonId, method: str, path: str, status: int
) -> None:
    """Write a request that changed something, or tried to, into the audit."""
    entry = AuditEntry(
        id=new_id("deed"),
        at=tx.now,
        who=who,
        person_id=person_id,
        method=method,
        path=path,
        status=status,
    )
    AUDIT.insert(tx, entry)


def run_once(
    tx: Tx, *, who: str, key: str, request: bytes, status: int, act: Callable[[Tx], Any]
) -> tuple[int, bytes]:
    """Carry out a request and return its response; for a repeated Idempotency-Key the first one.

    The response commits together with the effect of `act`, so a crash leaves both or neither.
    """
    if len(key) > MAX_KEY_CHARS:
        raise Refused(f"An Idempotency-Key holds {MAX_KEY_CHARS} characters; this has {len(key)}.")
    request_hash = hashlib.sha256(request).hexdigest()
    access.forget_answers(tx, tx.now - RESPONSE_LIFE)
    # The key is claimed before `act`: of two requests at the same time, the second waits on the
    # first one's row and then finds its response.
    if not access.claim(tx, who=who, key=key, request=request_hash):
        before = access.answer_to(tx, who, key)
        assert before is not None
        if before.request != request_hash:
            raise Conflict(f"The key {key!r} was used for another request; take a new one.")
        return before.status, before.body.encode()
    body = orjson.dumps(act(tx))
    access.fill(tx, who=who, key=key, status=status, body=body.decode())
    return status, body


def epoch(tx: Tx) -> str:
    """Return the random id of this database, in which event numbers have their meaning."""
    access.note(tx, _EPOCH, secrets.token_hex(8))
    found = access.about(tx, _EPOCH)
    assert found is not None
    return found
