"""Stages: their rows, and counts over their nodes."""

from typing import NamedTuple

from agiraph.core.domain.ids import NodeId, StageId, TeamId
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx

STAGES = Table("stages", Stage)

# Also a wait for the next day's money, which a person can end.
_PERSON = "w.kind in ('answer', 'approval', 'day')"


def of_team(tx: Tx, team_id: TeamId) -> list[Stage]:
    return STAGES.select(tx, "team_id = :team_id order by created_at, id", team_id=team_id)


def of_node(tx: Tx, node_id: NodeId) -> list[Stage]:
    """Return the stages that a node has opened, oldest first."""
    return STAGES.select(tx, "node_id = :node_id order by created_at, id", node_id=node_id)


def nodes(tx: Tx, stage_id: StageId) -> list[WorkNode]:
    return NODES.select(tx, "stage_id = :stage_id order by id", stage_id=stage_id)


class Tally(NamedTuple):
    """How many nodes a stage has, how many succeeded, and how many are open."""

    nodes: int
    done: int
    open: int


def tally(tx: Tx, stage_id: StageId) -> Tally:
    rows = tx.all(
        "select status, count(*) from nodes where stage_id = :stage_id group by status",
        stage_id=stage_id,
    )
    counts = {NodeStatus(status): int(number) for status, number in rows}
    return Tally(
        nodes=sum(counts.values()),
        done=counts.get(NodeStatus.COMPLETED, 0),
        open=sum(number for status, number in counts.items() if not status.is_final),
    )


def above(tx: Tx, node_id: NodeId) -> list[Stage]:
    """Lock and return the running stages to which a node or one of its ancestors belongs."""
    rows = tx.all(
        "with recursive up(id, parent_id, stage_id) as ("
        " select id, parent_id, stage_id from nodes where id = :id"
        " union all select n.id, n.parent_id, n.stage_id from nodes n join up u"
        " on n.id = u.parent_id) select stage_id from up where stage_id is not null",
        id=node_id,
    )
    # From the node upwards, in every transaction: two of them lock the same
    # stages in the same order.
    found = [STAGES.get(tx, row[0], lock=True) for row in rows]
    return [stage for stage in found if stage.status == "running"]


def waits_for_person(tx: Tx, stage_id: StageId) -> bool:
    """Return whether a node of this stage, or below one, waits for a person's answer."""
    row = tx.one(
        "with recursive down(id) as (select id from nodes where stage_id = :id"
        " union select n.id from nodes n join down d on n.parent_id = d.id)"
        " select 1 from down d join nodes n on n.id = d.id join waits w on w.node_id = d.id"
        f" where n.status = 'waiting' and {_PERSON} limit 1",
        id=stage_id,
    )
    return row is not None
