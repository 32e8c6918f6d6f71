"""Counts: totals for metrics and health checks, computed by the database."""

from typing import NamedTuple

from agiraph.core.store.rows import to_micros
from agiraph.core.store.tx import Tx


class Spent(NamedTuple):
    model: str
    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float


def teams(tx: Tx) -> list[tuple[str, int]]:
    rows = tx.all("select status, count(*) from teams group by status order by status")
    return [(row[0], int(row[1])) for row in rows]


def nodes(tx: Tx) -> list[tuple[str, str, int]]:
    sql = "select lane, status, count(*) from nodes group by lane, status order by lane, status"
    return [(row[0], row[1], int(row[2])) for row in tx.all(sql)]


def open_questions(tx: Tx) -> int:
    row = tx.one(
        "select count(*) from messages"
        " where answered_at is null and kind in ('question', 'approval')"
        " and recipient in (select id from persons)"
    )
    return 0 if row is None else int(row[0])


def spent(tx: Tx) -> list[Spent]:
    rows = tx.all(
        "select model, purpose, sum(calls), sum(input_tokens), sum(output_tokens), sum(usd)"
        " from spend group by model, purpose order by model, purpose"
    )
    return [Spent(r[0], r[1], int(r[2]), int(r[3]), int(r[4]), float(r[5])) for r in rows]


def overdue_seconds(tx: Tx) -> float:
    """Return for how long the oldest timer has been overdue; 0 if none is."""
    row = tx.one("select min(due_at) from timers")
    if row is None or row[0] is None:
        return 0.0
    return max(0.0, (to_micros(tx.now) - row[0]) / 1_000_000)
