"""Stage clocks: how long a stage has left. Its clock is paused while a node waits for a person."""

from datetime import timedelta

from agiraph.domain.ids import NodeId
from agiraph.domain.stages import Stage
from agiraph.domain.waits import Timer
from agiraph.store import stages, waits
from agiraph.store.stages import STAGES
from agiraph.store.tx import Tx


def timer(stage: Stage) -> Timer:
    return Timer("stage", stage.id)


def seconds_left(tx: Tx, stage: Stage) -> float:
    """Return the seconds until the stage times out, without its finished pauses."""
    passed = (tx.now - stage.created_at).total_seconds() - stage.paused_seconds
    return stage.contract.timeout_seconds - passed


def pause_or_resume_above(tx: Tx, node_id: NodeId) -> None:
    """Pause or resume the clocks of all stages above a node, by what their nodes wait for now.

    Call it after a node's waits changed, in the same transaction. Locks the rows of these stages.
    """
    for stage in stages.above(tx, node_id):
        pause_or_resume(tx, stage)


def pause_or_resume(tx: Tx, stage: Stage) -> None:
    """Pause a stage's clock while a node in it waits for a person; resume it afterwards.

    A pause leaves the timer's row: if it fires, `stages.check_deadline` ignores it. Resuming sets
    the timer anew, by the time that is left.
    """
    asked = stages.waits_for_person(tx, stage.id)
    if asked and stage.paused_since is None:
        STAGES.update(tx, stage.id, paused_since=tx.now)
    elif not asked and stage.paused_since is not None:
        paused = stage.paused_seconds + (tx.now - stage.paused_since).total_seconds()
        STAGES.update(tx, stage.id, paused_since=None, paused_seconds=paused)
        left = seconds_left(tx, STAGES.get(tx, stage.id))
        waits.set_timer(tx, timer(stage), tx.now + timedelta(seconds=max(left, 0)))
