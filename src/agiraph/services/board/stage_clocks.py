"""Stage clocks: how long a stage has left. A clock stands still while a person is asked."""

from datetime import timedelta

from agiraph.domain.ids import NodeId
from agiraph.domain.stages import Stage
from agiraph.store import stages, waits
from agiraph.store.stages import STAGES
from agiraph.store.tx import Tx

TIMER = "stage:"


def timer(stage: Stage) -> str:
    return f"{TIMER}{stage.id}"


def seconds_left(tx: Tx, stage: Stage) -> float:
    passed = (tx.now - stage.created_at).total_seconds() - stage.paused_seconds
    return stage.contract.timeout_seconds - passed


def pause_or_resume_above(tx: Tx, node_id: NodeId) -> None:
    """Stop the clocks of the stages above a node while a person is asked in them, else start them.

    Locks the rows of these stages.
    """
    for stage in stages.above(tx, node_id):
        pause_or_resume(tx, stage)


def pause_or_resume(tx: Tx, stage: Stage) -> None:
    asked = stages.waits_for_person(tx, stage.id)
    if asked and stage.paused_since is None:
        STAGES.update(tx, stage.id, paused_since=tx.now)
    elif not asked and stage.paused_since is not None:
        paused = stage.paused_seconds + (tx.now - stage.paused_since).total_seconds()
        STAGES.update(tx, stage.id, paused_since=None, paused_seconds=paused)
        left = seconds_left(tx, STAGES.get(tx, stage.id))
        waits.set_timer(tx, timer(stage), tx.now + timedelta(seconds=max(left, 0)))
