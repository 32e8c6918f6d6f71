"""Nodes: queries on the nodes table for queues, boards and running work."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.work import Halt, Lane, NodeStatus, Queue, StopReason, WorkNode
from agiraph.core.store.engine.work_stop import IS_STOPPED
from agiraph.core.store.messages import is_heard_in
from agiraph.core.store.rows import Table, from_json, to_micros
from agiraph.core.store.tx import Tx

NODES = Table("nodes", WorkNode)


def only_between(ids: tuple[NodeId, NodeId] | None) -> tuple[str, dict[str, NodeId]]:
    """Return the condition that `n` is one of the nodes from an id to another, and its values."""
    if ids is None:
        return "", {}
    return " and n.id >= :first and n.id <= :last", {"first": ids[0], "last": ids[1]}


def running(tx: Tx, queue: Queue) -> WorkNode | None:
    """Return the running node of a queue; a unique index allows only one."""
    where = "assignee_id = :agent and lane = :lane and status = 'running'"
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found else None


def next_assigned(tx: Tx, queue: Queue) -> WorkNode | None:
    """Return the oldest assigned node of a queue; None while all work is stopped."""
    # Ids begin with a time, so the order of ids is the order of creation.
    where = (
        "assignee_id = :agent and lane = :lane and status = 'assigned'"
        f" and not {IS_STOPPED} order by id limit 1"
    )
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found else None


def has_open(tx: Tx, agent_id: AgentId) -> bool:
    """Return whether this agent has work that is queued, running or parked."""
    return (
        tx.one(
            "select 1 from nodes where assignee_id = :agent and lane = 'work'"
            " and status in ('assigned', 'running', 'waiting') limit 1",
            agent=agent_id,
        )
        is not None
    )


def root(tx: Tx, node: WorkNode) -> WorkNode:
    """Return the topmost ancestor of a node."""
    while node.parent_id is not None:
        node = NODES.get(tx, node.parent_id)
    return node


def is_open(tx: Tx, node_id: NodeId | None) -> bool:
    """Return whether a node is given and has not ended."""
    return node_id is not None and not NODES.get(tx, node_id).status.is_final


def is_needed(tx: Tx, agent_id: AgentId) -> bool:
    """Return whether this agent has work in any open status, including work that cannot start."""
    sql = (
        "select 1 from nodes where assignee_id = :agent and lane = 'work'"
        " and status in ('pending', 'assigned', 'running', 'waiting') limit 1"
    )
    return tx.one(sql, agent=agent_id) is not None


def any_open_beside(tx: Tx, root: WorkNode) -> bool:
    """Return whether the team has open work outside the subtree of this node."""
    sql = (
        "with recursive tree(id) as (select id from nodes where id = :root"
        " union all select n.id from nodes n join tree t on n.parent_id = t.id)"
        " select 1 from nodes where team_id = :team_id and lane = 'work'"
        " and status in ('pending', 'assigned', 'running', 'waiting')"
        " and id not in (select id from tree) limit 1"
    )
    return tx.one(sql, root=root.id, team_id=root.team_id) is not None


def last_goal(tx: Tx, team_id: TeamId) -> WorkNode | None:
    """Return the root node of the team's goal; of several goals, the last."""
    where = "team_id = :id and source = 'system' and parent_id is null order by id desc limit 1"
    found = NODES.select(tx, where, id=team_id)
    return found[0] if found else None


def count_assigned(tx: Tx) -> int:
    """Return how many nodes of all teams are ready to run."""
    row = tx.one("select count(*) from nodes where status = 'assigned'")
    return 0 if row is None else int(row[0])


def count_open(tx: Tx, team_id: TeamId) -> int:
    return _count(tx, "team_id = :id and lane = 'work'", team_id)


def count_open_children(tx: Tx, node_id: NodeId) -> int:
    return _count(tx, "parent_id = :id", node_id)


def _count(tx: Tx, which: str, identity: str) -> int:
    row = tx.one(
        f"select count(*) from nodes where {which}"
        " and status in ('pending', 'assigned', 'running', 'waiting')",
        id=identity,
    )
    return 0 if row is None else int(row[0])


def unowned(tx: Tx, team_id: TeamId, *, chosen_by: datetime) -> list[WorkNode]:
    """Return nodes that are in nobody's queue. A running parent may still choose somebody, or start
    a stage, for a node that was created after `chosen_by`; these are left out."""
    where = (
        "team_id = :team and status = 'pending' and (created_at <= :by or "
        "not exists (select 1 from nodes p where p.id = nodes.parent_id and p.status = 'running')) "
        "order by id"
    )
    return NODES.select(tx, where, team=team_id, by=to_micros(chosen_by))


def at_work(tx: Tx) -> list[WorkNode]:
    """Return the running work nodes of all teams."""
    return NODES.select(tx, "status = 'running' and lane = 'work' order by claimed_at")


def all_running(tx: Tx) -> list[WorkNode]:
    """Return the running nodes of all teams and lanes."""
    return NODES.select(tx, "status = 'running' and assignee_id is not null order by id")


def waiting(tx: Tx, agent_id: AgentId) -> list[WorkNode]:
    where = "assignee_id = :agent and lane = 'work' and status = 'waiting' order by id"
    return NODES.select(tx, where, agent=agent_id)


def open_of(tx: Tx, agent_id: AgentId) -> list[WorkNode]:
    """Return the open work of an agent: running, then parked, then queued."""
    where = (
        "assignee_id = :agent and lane = 'work' and status in ('running', 'waiting', 'assigned')"
        " order by case status when 'running' then 0 when 'waiting' then 1 else 2 end, id"
    )
    return NODES.select(tx, where, agent=agent_id)


def last_of(tx: Tx, agent_id: AgentId) -> WorkNode | None:
    """Return the newest work node of an agent, in any status."""
    where = "assignee_id = :agent and lane = 'work' order by id desc limit 1"
    found = NODES.select(tx, where, agent=agent_id)
    return found[0] if found else None


def cut_off(tx: Tx, payer_id: NodeId, reasons: Sequence[StopReason]) -> list[WorkNode]:
    """Return up to 20 work nodes, newest first, that this node pays for and that ended for one of
    these reasons."""
    listed = ", ".join(f"'{reason}'" for reason in reasons)
    where = (
        "payer_id = :payer and lane = 'work' and status in ('failed', 'partial')"
        f" and stop_reason in ({listed}) order by id desc limit 20"
    )
    return NODES.select(tx, where, payer=payer_id)


def of_threads(tx: Tx, agent_id: AgentId, between: tuple[NodeId, NodeId]) -> list[WorkNode]:
    """Return the nodes that an agent has threads for, of those whose ids lie between these two."""
    threads = "id in (select node_id from threads where agent_id = :agent)"
    where = f"id >= :first and id <= :last and {threads}"
    return NODES.select(tx, where, agent=agent_id, first=between[0], last=between[1])


def find(tx: Tx, team_id: TeamId, identity: str) -> WorkNode:
    """Return the node with this id, or the only one whose id ends like it, on this team."""
    wanted = identity.strip()
    node = NODES.find(tx, wanted)
    if node is not None and node.team_id == team_id:
        return node
    # `%` and `_` are wildcards of LIKE. Shorter ends would match by chance, and two hits are enough
    # to know that the end is ambiguous.
    tail = wanted.replace("%", "").replace("_", "")
    if len(tail) >= 4:
        where = "team_id = :team and id like :tail order by id limit 2"
        found = NODES.select(tx, where, team=team_id, tail=f"%{tail}")
        if len(found) == 1:
            return found[0]
    raise NotFound("node", identity, known="check_board lists them with their ids.")


def still_open(tx: Tx, team_id: TeamId, lane: Lane = "work") -> list[WorkNode]:
    """Return the open nodes of a team, newest first."""
    where = (
        "team_id = :team and lane = :lane"
        " and status in ('pending', 'assigned', 'running', 'waiting') order by id desc"
    )
    return NODES.select(tx, where, team=team_id, lane=lane)


def unbegun(tx: Tx, queue: Queue) -> WorkNode | None:
    """Return the newest node of a queue if it was never claimed."""
    where = "assignee_id = :agent and lane = :lane and status = 'assigned' order by id desc limit 1"
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found and found[0].thread_id is None else None


def move(tx: Tx, node: WorkNode, to: NodeStatus, **changes: Any) -> WorkNode:
    """Change the status of a node, in its row and in the returned value, as the rules allow."""
    # Raises `IllegalMove` before anything is written.
    moved = node.moved(to, **changes)
    NODES.update(tx, node.id, status=to, **changes)
    return moved


class News(NamedTuple):
    """What a running node learns at its yield point."""

    halt: Halt | None
    mail: bool
    outermost: str
    """The budget of the outermost node that pays for this one, as it is stored."""


_OUTERMOST = (
    # Most nodes that ask a model often pay for themselves, and no search is needed.
    "case when coalesce(n.parent_id, n.payer_id) is null then n.budget else ("
    "with recursive payers(budget, next_id, level) as ("
    "select budget, coalesce(parent_id, payer_id), 0 from nodes where id = :id"
    " union all select p.budget, coalesce(p.parent_id, p.payer_id), level + 1 from nodes p"
    # A bound for damaged rows that form a cycle.
    " join payers on p.id = next_id where level < 64)"
    " select budget from payers order by level desc limit 1) end"
)


def news(tx: Tx, node_id: NodeId) -> News:
    """Return whether the node must stop, whether its agent has unread mail, and what limits the
    node from above: one statement, for it is run before each model call."""
    row = tx.one(
        "select n.cancel_requested, t.status, n.lane, exists (select 1 from messages m"
        f" where m.recipient = n.assignee_id and m.seen_at is null and {is_heard_in('n.id')}),"
        f" {IS_STOPPED}, {_OUTERMOST}"
        " from nodes n join teams t on t.id = n.team_id where n.id = :id",
        id=node_id,
    )
    assert row is not None
    cancel_requested, status, lane, mail, is_stopped, outermost = row
    # A stopped team still replies to a person, so this ends work only.
    if cancel_requested or (status == "stopped" and lane == "work"):
        return News("cancel", bool(mail), outermost)
    # A paused team still replies to a person; after an emergency stop nothing does.
    is_paused = is_stopped or (status == "paused" and lane != "reply")
    return News("pause" if is_paused else None, bool(mail), outermost)


def board(tx: Tx, team_id: TeamId, *, after: str = "", limit: int = 1000) -> list[WorkNode]:
    """Return a page of the team's work nodes, oldest first."""
    where = "team_id = :team_id and lane = 'work' and id > :after order by id limit :limit"
    return NODES.select(tx, where, team_id=team_id, after=after, limit=limit)


def everything(tx: Tx, team_id: TeamId) -> list[WorkNode]:
    """Return all nodes of a team, of every lane, oldest first."""
    return NODES.select(tx, "team_id = :team_id order by id", team_id=team_id)


class Titled(NamedTuple):
    """A node of a list: its place in the tree, and what it is called."""

    id: NodeId
    above_id: NodeId | None
    """The node above it, or the one that pays for it."""
    lane: Lane
    assignee_id: AgentId | None
    assignee: str
    """The name of its agent; empty: it has none."""
    title: str
    task: str


def costed(tx: Tx, team_id: TeamId, *, after: str, limit: int) -> list[Titled]:
    """Return a page of a team's nodes for the list of its costs, oldest first: all work, and
    replies or reflections that have cost something. Of a long task, only its start."""
    rows = tx.all(
        "select n.id, coalesce(n.parent_id, n.payer_id), n.lane, n.assignee_id,"
        " coalesce(a.name, ''), n.title, substr(n.task, 1, 2000)"
        " from nodes n left join agents a on a.id = n.assignee_id"
        " where n.team_id = :team_id and n.id > :after and (n.lane = 'work'"
        " or exists (select 1 from spend s where s.node_id = n.id)) order by n.id limit :limit",
        team_id=team_id,
        after=after,
        limit=limit,
    )
    return [Titled(*row) for row in rows]


def newest_manifests(tx: Tx, team_id: TeamId, *, limit: int) -> list[dict[str, str]]:
    """Return the published files of up to `limit` work nodes that have some, newest first."""
    rows = tx.all(
        "select manifest from nodes where team_id = :team_id and lane = 'work'"
        " and manifest <> '{}' order by id desc limit :limit",
        team_id=team_id,
        limit=limit,
    )
    return [from_json(row[0]) for row in rows]


def latest(tx: Tx, team_id: TeamId, *, limit: int) -> list[WorkNode]:
    """Return up to `limit` work nodes, open ones before ended ones; oldest first."""
    where = (
        "team_id = :team_id and lane = 'work' order by case when status in ('pending', 'assigned',"
        " 'running', 'waiting') then 0 else 1 end, id desc limit :limit"
    )
    found = NODES.select(tx, where, team_id=team_id, limit=limit)
    return sorted(found, key=lambda node: node.id)


def ended_lately(tx: Tx, team_id: TeamId, *, limit: int) -> list[WorkNode]:
    """Return the `limit` nodes of the `work` lane that ended last in a team, newest first."""
    where = (
        "team_id = :team_id and lane = 'work' and ended_at is not null"
        " order by ended_at desc, id desc limit :limit"
    )
    return NODES.select(tx, where, team_id=team_id, limit=limit)


def ended_since(tx: Tx, team_id: TeamId, since: datetime) -> list[WorkNode]:
    """Return the nodes of the `work` lane that have ended since then, oldest first."""
    where = "team_id = :team_id and lane = 'work' and ended_at >= :since order by id"
    return NODES.select(tx, where, team_id=team_id, since=to_micros(since))


_ENDED = "team_id = :team and lane = 'work' and ended_at is not null"
_NO_STEP = "is_step = 0"
_LAST_FIRST = "order by ended_at desc, id desc limit :limit"


def ended_of(tx: Tx, agent: Agent, *, limit: int) -> list[WorkNode]:
    """Return the `limit` nodes of the `work` lane that an agent ended last, newest first; of an
    agent that did only steps of other work the last one."""
    where = f"{_ENDED} and assignee_id = :agent"
    own = {"team": agent.team_id, "agent": agent.id}
    found = NODES.select(tx, f"{where} and {_NO_STEP} {_LAST_FIRST}", limit=limit, **own)
    return found or NODES.select(tx, f"{where} {_LAST_FIRST}", limit=1, **own)


def ended_of_others(tx: Tx, agent: Agent, *, limit: int) -> list[WorkNode]:
    """Return the `limit` nodes of the `work` lane that the agent's teammates ended last, newest
    first, without steps of other work."""
    where = f"{_ENDED} and coalesce(assignee_id, '') <> :agent and {_NO_STEP} {_LAST_FIRST}"
    return NODES.select(tx, where, team=agent.team_id, agent=agent.id, limit=limit)


def newest(tx: Tx, team_id: TeamId, *, limit: int) -> list[NodeId]:
    """Return the ids of the team's last work nodes, newest first."""
    rows = tx.all(
        "select id from nodes where team_id = :team_id and lane = 'work'"
        " order by id desc limit :limit",
        team_id=team_id,
        limit=limit,
    )
    return [NodeId(row[0]) for row in rows]


def queues(tx: Tx) -> list[Queue]:
    """Return each agent and lane with assigned or running nodes, for an engine that starts; none
    while all work is stopped."""
    rows = tx.all(
        "select distinct n.assignee_id, n.lane from nodes n join teams t on t.id = n.team_id"
        " where n.status in ('assigned', 'running') and n.assignee_id is not null"
        " and t.status <> 'archived' and (t.status <> 'paused' or n.lane = 'reply')"
        f" and not {IS_STOPPED}"
    )
    return [Queue(*row) for row in rows]


def forget_owners(tx: Tx) -> int:
    """Clear the owners of running nodes, so that they are claimed again; return how many.

    Only for a runtime that is alone on the database: elsewhere the owner may be alive.
    """
    return tx.run("update nodes set owner = null where status = 'running' and owner is not null")


def children(tx: Tx, node_id: NodeId) -> list[WorkNode]:
    return NODES.select(tx, "parent_id = :node_id order by id", node_id=node_id)


def failed_in_a_row(tx: Tx, root_id: NodeId, *, since: datetime) -> int:
    """Return how many tasks below a root a loop, silence or a limit has ended since this time, and
    since one of them succeeded."""
    reasons = (reason.value for reason in StopReason if reason.is_cut_off)
    listed = ", ".join(f"'{reason}'" for reason in (*reasons, StopReason.SILENT.value))
    row = tx.one(
        "with recursive down(id) as (select id from nodes where parent_id = :root"
        " union select n.id from nodes n join down d on n.parent_id = d.id),"
        " ended as (select * from nodes where id in (select id from down) and lane = 'work'"
        " and ended_at >= :since)"
        f" select count(*) from ended where stop_reason in ({listed}) and ended_at >= coalesce("
        "(select max(ended_at) from ended where status = 'completed'), :since)",
        root=root_id,
        since=to_micros(since),
    )
    return 0 if row is None else int(row[0])


def open_below(tx: Tx, node_id: NodeId) -> list[WorkNode]:
    """Return the tasks of a node that have not ended, and those that run on below a partial one.

    Steps, and tasks that were told to stop, are left out.
    """
    where = (
        "id in (with recursive down(id, status) as (select id, status from nodes"
        " where parent_id = :id and is_step = 0"
        " union all select n.id, n.status from nodes n join down d on n.parent_id = d.id"
        " where d.status = 'partial') select id from down)"
        " and status in ('pending', 'assigned', 'running', 'waiting')"
        " and cancel_requested = 0 order by id"
    )
    return NODES.select(tx, where, id=node_id)
