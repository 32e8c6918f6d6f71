"""Spend: the summed cost of model calls, by node, agent, purpose, model and day."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from agiraph.core.domain.chat import THINKING, Lease
from agiraph.core.domain.costs import CostLine, CostsBy, CostSum, DayPart
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, TeamId, ThreadId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Dialect, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    node_id: NodeId
    agent_id: AgentId
    purpose: str
    model: str
    day: str
    """The day in UTC, such as 2026-11-17."""
    team_id: TeamId
    calls: int
    lost: int
    """Calls begun before a crash and paid for, though their answer never arrived."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    thinking_tokens: int
    usd: float
    unpriced: int
    """Calls whose price nobody knows."""
    estimated: int
    """Calls whose tokens were estimated, because the vendor did not report them."""
    outermost_id: NodeId
    """The node that paid for it in the end when the row was made: this one, or the outermost above
    it. It stays if that node gets a payer later; `_spent_by` counts such rows for the payer."""


SEARCH = "search"
"""The purpose of a web search. It is paid for, but it is no call of a model."""
SIDE_CALL = "side call"
"""The purpose of a call that a chat client asks for beside its conversation, such as a title."""
SPEND = Table("spend", Spend, key="node_id")
_KEY = ("node_id", "agent_id", "purpose", "model", "day")
_SUMS = [name for name in SPEND.fields if name not in (*_KEY, "team_id", "outermost_id")]
_SAME = " and ".join(f"{name} = :{name}" for name in _KEY)
_MORE = f"update spend set {', '.join(f'{n} = {n} + :{n}' for n in _SUMS)} where {_SAME}"
_OUTERMOST = (
    "coalesce((with recursive above(id, next_id) as ("
    "select id, coalesce(parent_id, payer_id) from nodes where id = :node_id"
    " union select p.id, coalesce(p.parent_id, p.payer_id) from nodes p"
    " join above a on p.id = a.next_id) select id from above where next_id is null), :node_id)"
)
_VALUES = ", ".join(_OUTERMOST if f == "outermost_id" else f":{f}" for f in SPEND.fields)
_ADD = (
    f"insert into spend ({SPEND.columns}) values ({_VALUES})"
    f" on conflict ({', '.join(_KEY)}) do update set "
    + ", ".join(f"{name} = spend.{name} + excluded.{name}" for name in _SUMS)
)


def day_of(moment: datetime) -> str:
    """Return the day that a cost at this time counts for."""
    return moment.date().isoformat()


def settle(tx: Tx, lease: Lease, *, purpose: str, model: str, usage: Usage) -> None:
    """Add the cost of a finished call."""
    _add(tx, lease, purpose=purpose, model=model, usage=usage, lost=0)


def lose(tx: Tx, lease: Lease, *, purpose: str, model: str, usage: Usage) -> None:
    """Add the reservation of a call that may have been made and whose answer never came."""
    _add(tx, lease, purpose=purpose, model=model, usage=usage, lost=1)


def _add(tx: Tx, lease: Lease, *, purpose: str, model: str, usage: Usage, lost: int) -> None:
    values: dict[str, Any] = dict(
        node_id=lease.node_id,
        agent_id=lease.agent_id,
        purpose=purpose,
        model=model,
        day=day_of(tx.now),
        calls=1 - lost,
        lost=lost,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        thinking_tokens=usage.thinking_tokens,
        usd=usage.usd or 0.0,
        unpriced=int(usage.usd is None),
        estimated=int(usage.is_estimated),
    )
    if not tx.run(_MORE, **values):
        tx.run(_ADD, team_id=lease.team_id, **values)


def of_team(tx: Tx, team_id: TeamId) -> list[Spend]:
    return SPEND.select(tx, "team_id = :team_id order by node_id, purpose, day", team_id=team_id)


_COSTS = (
    # Each group has one purpose, so its calls are all of models or all searches.
    "sum(s.calls), sum(s.lost), sum(s.input_tokens), sum(s.output_tokens), sum(s.cached_tokens),"
    " sum(s.cache_write_tokens), sum(s.thinking_tokens), sum(s.usd), sum(s.unpriced),"
    " sum(s.estimated)"
)


def _cost_sum(purpose: str, counts: Sequence[float]) -> CostSum:
    *whole, usd, unpriced, estimated = counts
    calls, lost, given, written, cached, stored, thinking = map(int, whole)
    is_search = purpose == SEARCH
    return CostSum(
        calls=0 if is_search else calls,
        searches=calls if is_search else 0,
        lost=lost,
        input_tokens=given,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=stored,
        thinking_tokens=thinking,
        usd=round_usd(usd),
        unpriced=int(unpriced),
        estimated=int(estimated),
    )


class AgentSpend(NamedTuple):
    """What one agent has spent for one purpose with one model, on all nodes and days."""

    agent: str
    """Its name."""
    purpose: str
    model: str
    sum: CostSum
    goal_calls: int
    """Of it, the calls that the goal pays for."""
    goal_tokens: int
    goal_usd: float


def by_agent(tx: Tx, team_id: TeamId, goal_id: NodeId | None) -> list[AgentSpend]:
    """Return what a team has spent, and the share of a goal that nothing is above. In one
    statement, for each of both would read most rows of the team."""
    rows = tx.all(
        "with tops(id) as (select id from nodes where id = :goal or payer_id = :goal),"
        " s as (select agent_id, purpose, model, outermost_id in (select id from tops) as is_goals,"
        f" {', '.join(f'sum({name}) as {name}' for name in _SUMS)} from spend"
        " where team_id = :team_id group by agent_id, purpose, model, outermost_id)"
        " select coalesce((select a.name from agents a where a.id = s.agent_id), s.agent_id),"
        f" s.purpose, s.model, {_COSTS}, sum(case when is_goals then s.calls + s.lost else 0 end),"
        " sum(case when is_goals then s.input_tokens + s.output_tokens else 0 end),"
        " sum(case when is_goals then s.usd else 0.0 end) from s"
        " group by s.agent_id, s.purpose, s.model order by s.agent_id, s.purpose, s.model",
        team_id=team_id,
        goal=goal_id or "",
    )
    return [
        AgentSpend(a, p, m, _cost_sum(p, counts), 0 if p == SEARCH else calls, tokens, usd)
        for a, p, m, *counts, calls, tokens, usd in rows
    ]


def of_goal(groups: Sequence[AgentSpend]) -> "Total":
    """Return what `spent` does for the goal of these groups."""
    return _total(
        sum(group.goal_calls for group in groups),
        sum(group.goal_tokens for group in groups),
        sum(group.goal_usd for group in groups),
    )


def of_nodes(
    tx: Tx, team_id: TeamId, first: NodeId, last: NodeId
) -> defaultdict[str, list[CostLine]]:
    """Return the costs of the nodes from the first id to the last: for each node, a line for each
    purpose and model, summed over days and agents."""
    rows = tx.all(
        f"select s.node_id, s.purpose, s.model, {_COSTS} from nodes n join spend s"
        " on s.node_id = n.id where n.team_id = :team_id and n.id >= :first and n.id <= :last"
        " group by s.node_id, s.purpose, s.model order by s.node_id, s.purpose, s.model",
        team_id=team_id,
        first=first,
        last=last,
    )
    found: defaultdict[str, list[CostLine]] = defaultdict(list)
    for node_id, purpose, model, *counts in rows:
        line = CostLine(purpose=purpose, model=model, sum=_cost_sum(purpose, counts))
        found[node_id].append(line)
    return found


def of_node(tx: Tx, node_id: NodeId) -> list[Spend]:
    return SPEND.select(tx, "node_id = :node_id order by purpose, day", node_id=node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    calls: int
    tokens: int
    usd: float


NOTHING = Total(calls=0, tokens=0, usd=0.0)


def _total(calls: float, tokens: float, usd: float) -> Total:
    return Total(calls=int(calls), tokens=int(tokens), usd=round_usd(float(usd)))


_BELOW: dict[Dialect, str] = {
    "sqlite": "nodes n on n.parent_id = t.id or n.payer_id = t.id",
    # For `or` PostgreSQL would compare each node of the tree with all nodes there are.
    "postgres": "(select id, parent_id as above_id from nodes where parent_id is not null"
    " union all select id, payer_id from nodes where payer_id is not null) n on n.above_id = t.id",
}
"""What joins the nodes `n` directly below those of a tree `t`."""
_TREE = (
    # `union`, not `union all`: a node can be reached as a child and as paid for, and damaged rows
    # that form a cycle would otherwise never end.
    "with recursive tree(id) as (select id from nodes where id = :root"
    " union select n.id from tree t join {below}) "
)
_RESERVATIONS = (
    # A running node whose thread ends with an intent to ask the model: its
    # reservation counts as spent.
    "from nodes n join threads h on h.node_id = n.id"
    " join turns t on t.place = (select max(place) from turns where"
    " place > h.number * 4294967296 and place < (h.number + 1) * 4294967296)"
    " where n.status = 'running' and h.closed_at is null"
    " and t.role = 'intent' and t.ref = :thinking"
)


_SPENT = (
    "select coalesce(sum(case when purpose = :search then 0 else calls + lost end), 0),"
    " coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(usd), 0.0), null from spend"
    " where node_id in (select id from tree)"
)


_USED = (
    "sum(case when s.purpose = :search then 0 else s.calls + s.lost end) as calls,"
    " sum(s.input_tokens + s.output_tokens) as tokens, sum(s.usd) as usd"
)
_SPENT_BY = (
    "with recursive roots(id, above_id) as"
    " (select id, coalesce(parent_id, payer_id) from nodes where {where}),"
    " tree(root, id) as (select id, id from roots where above_id is not null union"
    " select t.root, n.id from tree t join {below}),"
    # Below an outermost node may be all of a team's work. What that has cost is found without a
    # walk through it: by the outermost node, or by one that was outermost and has it as payer now.
    " tops(root, id) as (select id, id from roots where above_id is null union all"
    " select r.id, n.id from roots r join nodes n on n.payer_id = r.id where r.above_id is null),"
    f" paid(id, calls, tokens, usd) as (select s.outermost_id, {_USED} from spend s"
    " where s.outermost_id in (select id from tops) group by s.outermost_id)"
    f" select t.root, {_USED} from tree t join spend s on s.node_id = t.id group by t.root"
    " union all select t.root, sum(p.calls), sum(p.tokens), sum(p.usd)"
    " from tops t join paid p on p.id = t.id group by t.root"
)


def _spent_by(tx: Tx, where: str, **values: str) -> dict[NodeId, Total]:
    rows = tx.all(_SPENT_BY.format(where=where, below=_BELOW[tx.dialect]), search=SEARCH, **values)
    return {node: _total(*used) for node, *used in rows}


def spent(tx: Tx, root: NodeId) -> Total:
    """Return the cost of a node and all below it as people see it: what is booked, without the
    reservations of running calls."""
    return _spent_by(tx, "id = :root", root=root).get(root, NOTHING)


def spent_between(tx: Tx, team_id: TeamId, ids: tuple[NodeId, NodeId]) -> dict[NodeId, Total]:
    """Return what `spent` does for each node of a team whose id lies between two ids; nodes that
    have cost nothing are left out."""
    where = "team_id = :team and id >= :first and id <= :last"
    return _spent_by(tx, where, team=team_id, first=ids[0], last=ids[1])


def total(tx: Tx, root: NodeId, *, apart_from: ThreadId | None = None) -> Total:
    """Return the cost of a node and all below it, with the reservations of other threads' calls.

    One statement, so that a call that ends meanwhile is counted once: as reserved, or as paid.
    """
    rows = tx.all(
        _TREE.format(below=_BELOW[tx.dialect]) + _SPENT + " union all select 1, 0, 0.0, t.extra"
        f" {_RESERVATIONS} and n.id in (select id from tree) and h.id <> :apart_from",
        root=root,
        apart_from=apart_from or "",
        thinking=THINKING,
        search=SEARCH,
    )
    reserved = [orjson.loads(row[3]) for row in rows if row[3] is not None]
    return Total(
        calls=sum(int(row[0]) for row in rows),
        tokens=sum(int(row[1]) for row in rows) + sum(each["tokens"] for each in reserved),
        usd=sum(float(row[2]) for row in rows) + sum(each["usd"] for each in reserved),
    )


_PARTS: dict[CostsBy, tuple[str, str]] = {
    "team": ("s.team_id", "coalesce((select t.name from teams t where t.id = s.team_id), '')"),
    "agent": ("s.agent_id", "coalesce((select a.name from agents a where a.id = s.agent_id), '')"),
    "model": ("s.model", "s.model"),
    "purpose": ("s.purpose", "s.purpose"),
}
"""The column by which costs are split, and what people call its values."""


def by_day(tx: Tx, by: CostsBy, first_day: str, team_id: TeamId | None = None) -> list[DayPart]:
    """Return what was spent from a day on, by day and part: of one team, or of all with those that
    were deleted."""
    column, name = _PARTS[by]
    of: dict[str, str] = {} if team_id is None else {"team": team_id}
    only = "" if team_id is None else " and s.team_id = :team"
    sql = (
        f"select s.day, {column}, {name}, sum(case when s.purpose = :search then 0 else"
        " s.calls + s.lost end), sum(s.input_tokens + s.output_tokens), sum(s.usd),"
        f" sum(s.unpriced) from spend s where s.day >= :first{only} group by s.day, {column}"
    )
    if team_id is None:
        sql += (
            " union all select day, '', '', 0, 0, deleted_usd, 0 from daily_limits"
            " where day >= :first and deleted_usd > 0"
        )
    rows = tx.all(f"{sql} order by 1, 2", first=first_day, search=SEARCH, **of)
    return [
        DayPart(
            day=day,
            key=key,
            name=named,
            calls=int(calls),
            tokens=int(tokens),
            usd=round_usd(float(usd)),
            unpriced=int(unpriced),
        )
        for day, key, named, calls, tokens, usd, unpriced in rows
    ]


def usd_of_day(tx: Tx, day: str) -> float:
    """Return what all teams together have spent on a day, with those that were deleted since."""
    row = tx.one(
        "select coalesce(sum(usd), 0.0)"
        " + coalesce((select deleted_usd from daily_limits where day = :day), 0.0)"
        " from spend where day = :day",
        day=day,
    )
    return 0.0 if row is None else float(row[0])


def usd_of_team(tx: Tx, team_id: TeamId, *, day: str | None = None) -> float:
    """Return the dollars that a team has spent, in all or on a day; rounded as in `costs`."""
    only = "" if day is None else " and day = :day"
    row = tx.one(
        f"select coalesce(sum(usd), 0.0) from spend where team_id = :team{only}",
        team=team_id,
        **({} if day is None else {"day": day}),
    )
    return 0.0 if row is None else round_usd(float(row[0]))


def usd_without_event(tx: Tx, team_id: TeamId) -> float:
    """Return the dollars that a team has spent on web searches and side calls.

    No event records their time, so no replayed moment includes them.
    """
    row = tx.one(
        "select coalesce(sum(usd), 0.0) from spend where team_id = :team"
        " and purpose in (:search, :side_call)",
        team=team_id,
        search=SEARCH,
        side_call=SIDE_CALL,
    )
    return 0.0 if row is None else round_usd(float(row[0]))


def usd_by_team(tx: Tx, between: tuple[TeamId, TeamId] | None = None) -> dict[TeamId, float]:
    """Return the dollars that each team has spent, for those that have spent something; of all
    teams, or of those whose ids lie between two ids."""
    sql = "select team_id, sum(usd) from spend {where} group by team_id"
    if between is None:
        rows = tx.all(sql.format(where=""))
    else:
        first, last = between
        where = "where team_id >= :first and team_id <= :last"
        rows = tx.all(sql.format(where=where), first=first, last=last)
    return {row[0]: round_usd(float(row[1])) for row in rows}


def round_usd(usd: float) -> float:
    """Return dollars as all sums show them: sums of the same rows in another order are equal."""
    return round(usd, 6)


def reserved_usd(tx: Tx, *, apart_from: ThreadId | None = None) -> float:
    """Return the money reserved for the running calls of all teams, without those of a thread."""
    sql = f"select t.extra {_RESERVATIONS} and h.id <> :apart_from"
    rows = tx.all(sql, apart_from=apart_from or "", thinking=THINKING)
    return sum(float(orjson.loads(row[0])["usd"]) for row in rows if row[0] is not None)


def of_day(tx: Tx, day: str) -> list[Spend]:
    """Return what was spent on a day, of all teams."""
    return SPEND.select(tx, "day = :day order by team_id, node_id, purpose", day=day)


class ModelSpend(NamedTuple):
    model: str
    calls: int
    usd: float


def by_model(tx: Tx, day: str) -> list[ModelSpend]:
    """Return what was spent on each model on a day, of all teams."""
    rows = tx.all(
        "select model, sum(calls), sum(usd) from spend where day = :day group by model", day=day
    )
    return [ModelSpend(row[0], int(row[1]), float(row[2])) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyLimit:
    """A day in UTC, and what became of its limit."""

    day: str
    stopped_usd: float | None = None
    """The dollars at which work stopped: the limit then, with what was allowed before."""
    allowed_usd: float = 0.0
    """What a person has allowed on top of the limit, for this day."""
    offered_usd: float = 0.0
    """What an approval without an amount allows."""
    question_id: MessageId | None = None
    """The newest request to allow more."""
    deleted_usd: float = 0.0
    """What teams spent on this day that were deleted since."""

    def is_reached(self, limit_usd: float, used_usd: float) -> bool:
        """Whether no further call may start: the money is used, or work has stopped before."""
        most = limit_usd + self.allowed_usd
        return used_usd >= most or self.has_stopped_at(most)

    def has_stopped_at(self, most_usd: float) -> bool:
        """Whether work has stopped under this limit or a higher one."""
        return self.stopped_usd is not None and most_usd <= self.stopped_usd


DAILY_LIMITS = Table("daily_limits", DailyLimit, key="day")


def lock(tx: Tx, day: str) -> DailyLimit:
    """Return the row of a day, made if needed, and hold its lock until the commit."""
    tx.run(
        "insert into daily_limits (day, allowed_usd, offered_usd) values (:day, 0, 0)"
        " on conflict (day) do nothing",
        day=day,
    )
    return DAILY_LIMITS.get(tx, day, lock=True)


def asked_by(tx: Tx, question_id: MessageId) -> DailyLimit | None:
    """Return the day whose limit this request is about; None if it is about something else."""
    found = DAILY_LIMITS.select(tx, "question_id = :id", id=question_id)
    return found[0] if found else None


def open_in(tx: Tx, team_id: TeamId) -> list[DailyLimit]:
    """Return the days whose request was sent by this team and is not answered yet, locked."""
    asked = "select id from messages where team_id = :team and answered_at is null"
    found = DAILY_LIMITS.select(tx, f"question_id in ({asked})", team=team_id)
    return [lock(tx, row.day) for row in found]
