"""Access: handing out passes, letting their bearers in, and writing down what they did."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from agiraph.domain.access import AuditEntry, Scope, Token, TokenKind
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.ids import new_id
from agiraph.store import access
from agiraph.store.access import AUDIT, PASSES
from agiraph.store.tx import Tx

LINK_LIFE = timedelta(minutes=15)
SESSION_LIFE = timedelta(days=30)
ANSWERS_KEPT = timedelta(days=1)
LONGEST_KEY = 200
_EPOCH = "epoch"


class Issued(NamedTuple):
    """A pass and its secret, which is shown once and kept nowhere."""

    granted: Token
    secret: str


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def issue(
    tx: Tx, *, kind: TokenKind, name: str, scope: Scope, life: timedelta | None = None
) -> Issued:
    if not name.strip():
        raise Refused("Give the token a name: it is how you know it again in the list and audit.")
    secret = secrets.token_urlsafe(32)
    granted = Token(
        id=new_id("pass"),
        kind=kind,
        name=name.strip(),
        digest=digest(secret),
        scope=scope,
        created_at=tx.now,
        expires_at=None if life is None else tx.now + life,
    )
    return Issued(PASSES.insert(tx, granted), secret)


def link(tx: Tx) -> Issued:
    """A secret for a browser's first visit."""
    return issue(tx, kind="link", name="sign-in link", scope="admin", life=LINK_LIFE)


def redeem(tx: Tx, secret: str) -> Issued:
    """A session for whoever comes with a link that nobody has used."""
    found = access.by_digest(tx, digest(secret))
    if found is None or found.kind != "link" or not _is_good(tx, found):
        raise Refused("This sign-in link is not known or too old. Make a new one: agiraph link")
    if not access.use_up(tx, found.id):
        raise Refused("This sign-in link was used before. Make a new one: agiraph link")
    return issue(tx, kind="session", name="browser", scope=found.scope, life=SESSION_LIFE)


def bearer(tx: Tx, secret: str) -> Token | None:
    """Whose secret this is; nobody's, if it is wrong, too old or taken back."""
    found = access.by_digest(tx, digest(secret))
    if found is None or found.kind == "link" or not _is_good(tx, found):
        return None
    return found


def _is_good(tx: Tx, granted: Token) -> bool:
    is_old = granted.expires_at is not None and granted.expires_at <= tx.now
    return granted.revoked_at is None and not is_old


def revoke(tx: Tx, identity: str) -> Token:
    if PASSES.find(tx, identity) is None:
        raise NotFound("token", identity, known="`agiraph tokens` lists them.")
    PASSES.update(tx, identity, revoked_at=tx.now)
    return PASSES.get(tx, identity)


def record(tx: Tx, *, who: str, method: str, path: str, status: int) -> None:
    """Write into the audit what somebody changed, or tried to."""
    deed = AuditEntry(
        id=new_id("deed"), at=tx.now, who=who, method=method, path=path, status=status
    )
    AUDIT.insert(tx, deed)


def once(
    tx: Tx, *, who: str, key: str, request: bytes, status: int, act: Callable[[Tx], Any]
) -> tuple[int, bytes]:
    """Do what a request asks, or give the answer it got when it first came with this key."""
    if len(key) > LONGEST_KEY:
        raise Refused(f"An Idempotency-Key holds {LONGEST_KEY} characters.")
    asked = hashlib.sha256(request).hexdigest()
    access.forget_answers(tx, tx.now - ANSWERS_KEPT)
    # Taken before anything is done: of two at the same time, one waits for the other's answer.
    if not access.claim(tx, who=who, key=key, request=asked):
        before = access.answer_to(tx, who, key)
        assert before is not None
        if before.request != asked:
            raise Conflict(f"The key {key!r} was used for another request; take a new one.")
        return before.status, before.body.encode()
    body = orjson.dumps(act(tx))
    access.fill(tx, who=who, key=key, status=status, body=body.decode())
    return status, body


def epoch(tx: Tx) -> str:
    """What tells this database from every other: numbers of one mean nothing in another."""
    access.note(tx, _EPOCH, secrets.token_hex(8))
    found = access.about(tx, _EPOCH)
    assert found is not None
    return found
