"""Access: access tokens, the audit log, and responses stored by idempotency key."""

from dataclasses import dataclass
from datetime import datetime

from agiraph.domain.access import AuditEntry, Token
from agiraph.store.rows import Table, to_micros
from agiraph.store.tx import Tx

PASSES = Table("passes", Token)
AUDIT = Table("audit", AuditEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The stored response to a request with an idempotency key."""

    who: str
    key: str
    request: str
    """A digest of the request: a key may be used for one request only."""
    status: int
    body: str
    at: datetime


# The primary key is (who, key). `Table.get` and `update` would find another caller's row by the key
# alone, so this module does not use them for `answered`.
ANSWERED = Table("answered", Answered, key="key")


def by_digest(tx: Tx, digest: str) -> Token | None:
    found = PASSES.select(tx, "digest = :digest", digest=digest)
    return found[0] if found else None


def in_force(tx: Tx) -> list[Token]:
    """Return the tokens that are neither revoked nor expired."""
    where = (
        "revoked_at is null and (expires_at is null or expires_at > :now) order by created_at, id"
    )
    return PASSES.select(tx, where, now=to_micros(tx.now))


def use_up(tx: Tx, identity: str) -> bool:
    """Use up a one-time token; return False if it was used before."""
    # The condition is part of the update: two requests that read the token
    # first could both find it unused.
    sql = "update passes set used_at = :now where id = :id and used_at is null"
    return tx.run(sql, id=identity, now=to_micros(tx.now)) == 1


def audit(tx: Tx, *, after: str = "", limit: int = 100) -> list[AuditEntry]:
    return AUDIT.select(tx, "id > :after order by id limit :limit", after=after, limit=limit)


def claim(tx: Tx, *, who: str, key: str, request: str) -> bool:
    """Claim an idempotency key; return False if it is taken.

    Waits while another transaction holds the same key and has not committed: the unique index
    makes the insert wait, so that only one of two equal requests acts.
    """
    sql = (
        "insert into answered (who, key, request, status, body, at)"
        " values (:who, :key, :request, 0, '', :at) on conflict do nothing"
    )
    return tx.run(sql, who=who, key=key, request=request, at=to_micros(tx.now)) == 1


def fill(tx: Tx, *, who: str, key: str, status: int, body: str) -> None:
    """Store the response to the request with this key."""
    sql = "update answered set status = :status, body = :body where who = :who and key = :key"
    tx.run(sql, who=who, key=key, status=status, body=body)


def answer_to(tx: Tx, who: str, key: str) -> Answered | None:
    found = ANSWERED.select(tx, "who = :who and key = :key", who=who, key=key)
    return found[0] if found else None


def forget_answers(tx: Tx, before: datetime) -> int:
    return tx.run("delete from answered where at < :before", before=to_micros(before))


def about(tx: Tx, name: str) -> str | None:
    row = tx.one("select value from about where name = :name", name=name)
    return None if row is None else row[0]


def note(tx: Tx, name: str, value: str) -> None:
    """Store a fact about this database, unless it is stored already."""
    tx.run(
        # Two processes may start on a new database at once. The first value
        # stays, and both read it back.
        "insert into about (name, value) values (:name, :value) on conflict (name) do nothing",
        name=name,
        value=value,
    )
