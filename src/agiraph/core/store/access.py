"""Access: access tokens, the audit log, and responses stored by idempotency key."""

from datetime import datetime

from agiraph.core.domain.provenance.access import AuditEntry, Token
from agiraph.core.domain.value import dataclass
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx

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


def session_of(tx: Tx, link_id: str) -> Token | None:
    """Return the session that a sign-in link was exchanged for."""
    found = PASSES.select(tx, "link_id = :link", link=link_id)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries of the audit are wanted; empty: all."""

    who: str = ""
    """A part of the token's name, in any case."""
    path: str = ""
    """The beginning of the path."""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def where(self) -> str:
        parts = [
            "lower(who) like :who escape '!'" if self.who else "",
            "path like :path escape '!'" if self.path else "",
            "at >= :since" if self.since else "",
            "at < :until" if self.until else "",
        ]
        return "".join(f" and {part}" for part in parts if part)

    @property
    def values(self) -> dict[str, str | int]:
        found: dict[str, str | int] = {}
        if self.who:
            found["who"] = f"%{_literal(self.who.lower())}%"
        if self.path:
            found["path"] = f"{_literal(self.path)}%"
        if self.since:
            found["since"] = to_micros(self.since)
        if self.until:
            found["until"] = to_micros(self.until)
        return found


def _literal(text: str) -> str:
    """Return a text for LIKE in which no character is a wildcard."""
    return "".join(f"!{c}" if c in "!%_" else c for c in text)


def audit(
    tx: Tx,
    *,
    after: str = "",
    limit: int = 100,
    is_newest_first: bool = False,
    only: AuditFilter | None = None,
) -> list[AuditEntry]:
    """Return a page of the audit, oldest first or newest first; `after` is the last id of the page
    before it."""
    only = only or AuditFilter()
    begins = "1 = 1"
    if after:
        begins = "id < :after" if is_newest_first else "id > :after"
    order = "order by id desc" if is_newest_first else "order by id"
    values = {**only.values, "limit": limit, **({"after": after} if after else {})}
    return AUDIT.select(tx, f"{begins}{only.where} {order} limit :limit", **values)


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
