"""Confirmation: a person lifts the bounds of a trigger that a labelled thread created."""

from agiraph.domain.errors import Conflict
from agiraph.domain.events.triggers import TriggerChanged
from agiraph.domain.ids import TriggerId
from agiraph.domain.moments import parse_moment
from agiraph.domain.triggers import Trigger
from agiraph.services.triggers.firing import slot_at
from agiraph.services.triggers.kinds import registry
from agiraph.store import teams
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx


def confirm(tx: Tx, trigger_id: TriggerId) -> Trigger:
    """Let a labelled trigger fire for as long as its configuration says.

    Its words stay labelled: the work that it starts still asks before it takes a way out.
    """
    # The agent's row before the trigger's, as every verb takes them.
    teams.lock(tx, TRIGGERS.get(tx, trigger_id).agent_id)
    trigger = TRIGGERS.get(tx, trigger_id, lock=True)
    if not trigger.label or trigger.status not in ("active", "paused"):
        raise Conflict(f"{trigger_id} is {trigger.status}: it does not wait for a decision.")
    read = registry.kind_of(trigger).read(trigger.config)
    until = None if read.until is None else parse_moment(read.until, read.zone)
    bounds = {"max_fires": read.max_fires, "until": until}
    TRIGGERS.update(tx, trigger_id, confirmed_at=tx.now, **bounds)
    due = None if trigger.due_at is None else slot_at(trigger.due_at)
    changed = TriggerChanged(
        trigger_id=trigger.id, agent_id=trigger.agent_id, status=trigger.status, due_at=due
    )
    tx.emit(trigger.team_id, changed)
    return TRIGGERS.get(tx, trigger_id)
