"""Passes, the audit and answers already given, as rows."""

from dataclasses import dataclass
from datetime import datetime

from agiraph.domain.access import AuditEntry, Token
from agiraph.store.rows import Table, to_micros
from agiraph.store.tx import Tx

PASSES = Table("passes", Token)
AUDIT = Table("audit", AuditEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a request was answered."""

    who: str
    key: str
    request: str
    """A digest of what was asked: a key stands for one request only."""
    status: int
    body: str
    at: datetime


ANSWERED = Table("answered", Answered, key="key")


def by_digest(tx: Tx, digest: str) -> Token | None:
    found = PASSES.select(tx, "digest = :digest", digest=digest)
    return found[0] if found else None


def in_force(tx: Tx) -> list[Token]:
    """Every pass that opens something now."""
    where = (
        "revoked_at is null and (expires_at is null or expires_at > :now) order by created_at, id"
    )
    return PASSES.select(tx, where, now=to_micros(tx.now))


def use_up(tx: Tx, identity: str) -> bool:
    """Take a pass that is good once; False if somebody was quicker."""
    sql = "update passes set used_at = :now where id = :id and used_at is null"
    return tx.run(sql, id=identity, now=to_micros(tx.now)) == 1


def audit(tx: Tx, *, after: str = "", limit: int = 100) -> list[AuditEntry]:
    return AUDIT.select(tx, "id > :after order by id limit :limit", after=after, limit=limit)


def claim(tx: Tx, *, who: str, key: str, request: str) -> bool:
    """Take a key for a request; False if it is taken. Waits for whoever is just taking it."""
    sql = (
        "insert into answered (who, key, request, status, body, at)"
        " values (:who, :key, :request, 0, '', :at) on conflict do nothing"
    )
    return tx.run(sql, who=who, key=key, request=request, at=to_micros(tx.now)) == 1


def fill(tx: Tx, *, who: str, key: str, status: int, body: str) -> None:
    """Write down what the request with this key was answered."""
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
    """Write down a fact about this database, unless it is known."""
    tx.run(
        "insert into about (name, value) values (:name, :value) on conflict (name) do nothing",
        name=name,
        value=value,
    )
