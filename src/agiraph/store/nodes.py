"""Nodes, as rows: queues, boards and who runs what."""

from typing import Any, NamedTuple

from agiraph.domain.errors import NotFound
from agiraph.domain.ids import AgentId, NodeId, TeamId
from agiraph.domain.work import Halt, Lane, NodeStatus, Queue, WorkNode
from agiraph.store.rows import Table
from agiraph.store.tx import Tx

NODES = Table("nodes", WorkNode)


def running(tx: Tx, queue: Queue) -> WorkNode | None:
    where = "assignee_id = :agent and lane = :lane and status = 'running'"
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found else None


def next_assigned(tx: Tx, queue: Queue) -> WorkNode | None:
    """The oldest node of a queue."""
    where = "assignee_id = :agent and lane = :lane and status = 'assigned' order by id limit 1"
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found else None


def has_open(tx: Tx, agent_id: AgentId) -> bool:
    """Whether this agent has any work queued, running or parked."""
    return (
        tx.one(
            "select 1 from nodes where assignee_id = :agent and lane = 'work'"
            " and status in ('assigned', 'running', 'waiting') limit 1",
            agent=agent_id,
        )
        is not None
    )


def root(tx: Tx, node: WorkNode) -> WorkNode:
    """What a node was made for in the end."""
    while node.parent_id is not None:
        node = NODES.get(tx, node.parent_id)
    return node


def is_open(tx: Tx, node_id: NodeId | None) -> bool:
    """Whether there is such a node and it is not over."""
    return node_id is not None and not NODES.get(tx, node_id).status.is_final


def is_needed(tx: Tx, agent_id: AgentId) -> bool:
    """The same, or whether there is something it is to do once it can start."""
    sql = (
        "select 1 from nodes where assignee_id = :agent and lane = 'work'"
        " and status in ('pending', 'assigned', 'running', 'waiting') limit 1"
    )
    return tx.one(sql, agent=agent_id) is not None


def any_open_beside(tx: Tx, root: WorkNode) -> bool:
    """Whether its team has anything to do that is not below this node."""
    sql = (
        "with recursive tree(id) as (select id from nodes where id = :root"
        " union all select n.id from nodes n join tree t on n.parent_id = t.id)"
        " select 1 from nodes where team_id = :team_id and lane = 'work'"
        " and status in ('pending', 'assigned', 'running', 'waiting')"
        " and id not in (select id from tree) limit 1"
    )
    return tx.one(sql, root=root.id, team_id=root.team_id) is not None


def last_goal(tx: Tx, team_id: TeamId) -> WorkNode | None:
    """The work on a team's goal; of several goals in turn, on the last."""
    where = "team_id = :id and source = 'system' and parent_id is null order by id desc limit 1"
    found = NODES.select(tx, where, id=team_id)
    return found[0] if found else None


def count_running(tx: Tx, team_id: TeamId) -> int:
    """How many pieces of a team's work run now."""
    sql = "select count(*) from nodes where team_id = :id and lane = 'work' and status = 'running'"
    row = tx.one(sql, id=team_id)
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


def unowned(tx: Tx, team_id: TeamId) -> list[WorkNode]:
    """Nodes nobody was chosen for, whose makers are not at work and might still choose."""
    where = (
        "team_id = :team and status = 'pending' and assignee_id is null and not exists ("
        "select 1 from nodes p where p.id = nodes.parent_id and p.status = 'running') order by id"
    )
    return NODES.select(tx, where, team=team_id)


def at_work(tx: Tx) -> list[WorkNode]:
    """Every piece of work that runs, of all teams."""
    return NODES.select(tx, "status = 'running' and lane = 'work' order by claimed_at")


def waiting(tx: Tx, agent_id: AgentId) -> list[WorkNode]:
    where = "assignee_id = :agent and lane = 'work' and status = 'waiting' order by id"
    return NODES.select(tx, where, agent=agent_id)


def open_of(tx: Tx, agent_id: AgentId) -> list[WorkNode]:
    """What an agent has before it: what runs first, then its queue."""
    where = (
        "assignee_id = :agent and lane = 'work' and status in ('running', 'waiting', 'assigned')"
        " order by case status when 'running' then 0 when 'waiting' then 1 else 2 end, id"
    )
    return NODES.select(tx, where, agent=agent_id)


def last_of(tx: Tx, agent_id: AgentId) -> WorkNode | None:
    """What an agent did last, or does."""
    where = "assignee_id = :agent and lane = 'work' order by id desc limit 1"
    found = NODES.select(tx, where, agent=agent_id)
    return found[0] if found else None


def find(tx: Tx, team_id: TeamId, identity: str) -> WorkNode:
    """The node of that id, or of the id's tail, on this team's board."""
    wanted = identity.strip()
    node = NODES.find(tx, wanted)
    if node is not None and node.team_id == team_id:
        return node
    tail = wanted.replace("%", "").replace("_", "")
    if len(tail) >= 4:
        where = "team_id = :team and id like :tail order by id limit 2"
        found = NODES.select(tx, where, team=team_id, tail=f"%{tail}")
        if len(found) == 1:
            return found[0]
    raise NotFound("node", identity, known="check_board lists them with their ids.")


def still_open(tx: Tx, team_id: TeamId, lane: Lane = "work") -> list[WorkNode]:
    """What of a team is not over, what was made last first."""
    where = (
        "team_id = :team and lane = :lane"
        " and status in ('pending', 'assigned', 'running', 'waiting') order by id desc"
    )
    return NODES.select(tx, where, team=team_id, lane=lane)


def unbegun(tx: Tx, queue: Queue) -> WorkNode | None:
    """The newest node of a queue, if nobody has ever claimed it."""
    where = "assignee_id = :agent and lane = :lane and status = 'assigned' order by id desc limit 1"
    found = NODES.select(tx, where, agent=queue.agent_id, lane=queue.lane)
    return found[0] if found and found[0].thread_id is None else None


def move(tx: Tx, node: WorkNode, to: NodeStatus, **changes: Any) -> WorkNode:
    """Move a node as the rules allow, on the row as in the value."""
    moved = node.moved(to, **changes)
    NODES.update(tx, node.id, status=to, **changes)
    return moved


class News(NamedTuple):
    """What a running node should know at its yield point."""

    halt: Halt | None
    mail: bool


def news(tx: Tx, node_id: NodeId) -> News:
    """Whether somebody wants this node to stop, and whether somebody wrote to its agent."""
    row = tx.one(
        "select n.cancel_requested, t.status, n.lane, exists (select 1 from messages m"
        " where m.recipient = n.assignee_id and m.seen_at is null)"
        " from nodes n join teams t on t.id = n.team_id where n.id = :id",
        id=node_id,
    )
    assert row is not None
    cancel_requested, status, lane, mail = row
    if cancel_requested or (status == "stopped" and lane == "work"):
        return News("cancel", bool(mail))
    # A team that rests can still be talked to.
    return News("pause" if status == "paused" and lane != "reply" else None, bool(mail))


def board(tx: Tx, team_id: TeamId, *, after: str = "", limit: int = 1000) -> list[WorkNode]:
    """The work of a team, in the order it was made."""
    where = "team_id = :team_id and lane = 'work' and id > :after order by id limit :limit"
    return NODES.select(tx, where, team_id=team_id, after=after, limit=limit)


def everything(tx: Tx, team_id: TeamId) -> list[WorkNode]:
    """All nodes of a team, of every lane."""
    return NODES.select(tx, "team_id = :team_id order by id", team_id=team_id)


def latest(tx: Tx, team_id: TeamId, *, limit: int) -> list[WorkNode]:
    """What is not over, then what ended last, as far as the limit; in the order it was made."""
    where = (
        "team_id = :team_id and lane = 'work' order by case when status in ('pending', 'assigned',"
        " 'running', 'waiting') then 0 else 1 end, id desc limit :limit"
    )
    found = NODES.select(tx, where, team_id=team_id, limit=limit)
    return sorted(found, key=lambda node: node.id)


def ended_lately(tx: Tx, team_id: TeamId, *, limit: int) -> list[WorkNode]:
    """The work of a team that is over, what ended last first."""
    where = (
        "team_id = :team_id and lane = 'work' and ended_at is not null"
        " order by ended_at desc, id desc limit :limit"
    )
    return NODES.select(tx, where, team_id=team_id, limit=limit)


def queues(tx: Tx) -> list[Queue]:
    """Every queue that somebody should look at: for a runtime that has just started."""
    rows = tx.all(
        "select distinct n.assignee_id, n.lane from nodes n join teams t on t.id = n.team_id"
        " where n.status in ('assigned', 'running') and n.assignee_id is not null"
        " and t.status <> 'archived' and (t.status <> 'paused' or n.lane = 'reply')"
    )
    return [Queue(*row) for row in rows]


def forget_owners(tx: Tx) -> int:
    """Let whoever comes next take up what runs; for when no other runner can be alive."""
    return tx.run("update nodes set owner = null where status = 'running' and owner is not null")


def children(tx: Tx, node_id: NodeId) -> list[WorkNode]:
    return NODES.select(tx, "parent_id = :node_id order by id", node_id=node_id)
