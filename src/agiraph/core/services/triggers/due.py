"""Due: hand a trigger to its kind when its time, an event, a file hash or a request has come.

Every function locks the agent's row before the trigger's row, as do all functions that give the
agent work; the opposite order would deadlock with them.
"""

import hmac
from typing import NamedTuple

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import TeamId, TriggerId, new_id
from agiraph.core.domain.triggers import LATE_AFTER, Firing, Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.mail.bus import TEXT_LIMIT
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.definitions import hash_of
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.services.triggers.kinds.base import FileHashes
from agiraph.core.store import teams, triggers
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

BY_HAND = "A person ran it by hand."
"""The reason of a firing that a person asked for, and what the woken agent is told of it."""


def _lock_active(tx: Tx, trigger_id: TriggerId) -> tuple[Trigger, Agent] | None:
    """Lock a trigger and its agent, and return both; None if the trigger must not fire now.

    It must not fire if it is not active, if its configuration is not valid here (this ends it), or
    if its team is neither active nor completed. The triggers of a completed team still fire.
    """
    found = TRIGGERS.find(tx, trigger_id)
    if found is None:
        return None
    # The first read only tells which agent's row to lock; the trigger is read
    # again under its own lock.
    agent = teams.lock(tx, found.agent_id)
    trigger = TRIGGERS.get(tx, trigger_id, lock=True)
    team = TEAMS.get(tx, trigger.team_id)
    # In a paused team a due trigger stays due; resuming the team arms it again.
    is_active = trigger.status == "active" and team.status in ("active", "completed")
    return (trigger, agent) if is_active and _is_readable(tx, trigger) else None


def _is_readable(tx: Tx, trigger: Trigger) -> bool:
    """Tell whether the stored configuration is still valid here; end the trigger if it is not.

    A time zone may be missing on another machine. One such trigger must not stop the others.
    """
    try:
        registry.kind_of(trigger).read(trigger.config)
    except Refused as refusal:
        firing.end(tx, trigger, "expired", f"it makes no sense any more: {refusal}")
        return False
    return True


def fire_due(tx: Tx, trigger_id: TriggerId) -> None:
    """Handle the timer of a trigger, which has expired."""
    locked = _lock_active(tx, trigger_id)
    if locked is None:
        return
    trigger, agent = locked
    if trigger.due_at is None:
        return
    if trigger.due_at > tx.now:  # the due time was moved after the timer was taken
        return firing.arm(tx, trigger, trigger.due_at)
    registry.kind_of(trigger).on_due(tx, trigger, agent)


def apply_file_hashes(tx: Tx, trigger_id: TriggerId, hashes: FileHashes) -> None:
    """Pass the hashes of its watched files to a due trigger, and delete the request for them."""
    # Whatever follows: an errand that stays would be taken again after `ERRAND_SECONDS`.
    triggers.drop_errand(tx, triggers.file_check_of(trigger_id).id)
    locked = _lock_active(tx, trigger_id)
    # The trigger may have been changed, paused or fired while the files were read.
    if locked is not None and locked[0].due_at is not None and locked[0].due_at <= tx.now:
        registry.kind_of(locked[0]).on_files_read(tx, *locked, hashes)


def agent_idle(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Set the due times that count from the end of the agent's last work, which is `last`."""
    # The caller holds the agent's row lock, which comes before a trigger's: nobody fires
    # these triggers meanwhile.
    is_quiet = firing.found_nothing_to_do(last)
    for trigger in triggers.active_of_agent(tx, agent.id):
        kind = registry.kind_of(trigger)
        if not kind.is_due_after_work or not _is_readable(tx, trigger):
            continue
        quiet = trigger.quiet + int(last.trigger_id == trigger.id)
        kind.on_agent_idle(tx, trigger, quiet=quiet if is_quiet else 0)


class EventListener(NamedTuple):
    """A trigger that waits for events of a team, with the pattern of the types it waits for."""

    team_id: TeamId
    trigger_id: TriggerId
    pattern: str
    is_behind: bool
    """Whether there are events that it has not read."""


def event_listeners(tx: Tx) -> list[EventListener]:
    """Return all active triggers that wait for events, of active and completed teams."""
    followers = {type: kind for type, kind in registry.KINDS.items() if kind.follows_events}
    return [
        EventListener(
            found.team_id,
            found.trigger_id,
            registry.kind_named(found.type).event_pattern(found.config),
            found.is_behind,
        )
        for found in triggers.event_followers(tx, list(followers))
    ]


def read_events(tx: Tx, trigger_id: TriggerId) -> bool:
    """Let a trigger read the events after its cursor. Return whether there may be more."""
    locked = _lock_active(tx, trigger_id)
    return locked is not None and registry.kind_of(locked[0]).on_events(tx, locked[0])


def check_secret(tx: Tx, trigger_id: TriggerId, secret: str) -> None:
    """Raise `NotFound` if there is no such webhook, or if this is not its secret."""
    found = TRIGGERS.find(tx, trigger_id)
    # The same error for an unknown trigger and a wrong secret: callers must not
    # find out which triggers exist.
    if found is None or not hmac.compare_digest(found.secret or "", hash_of(secret)):
        raise NotFound("webhook", trigger_id, known="Its address or its secret is wrong.")


def receive_request(
    tx: Tx, trigger_id: TriggerId, secret: str, body: str, *, delivery: str | None = None
) -> Firing:
    """Fire a webhook. A second request with the same delivery id returns the first one's firing."""
    check_secret(tx, trigger_id, secret)
    if len(body) > TEXT_LIMIT:
        raise Refused(f"A webhook takes {TEXT_LIMIT:,} characters; this has {len(body):,}.")
    slot = new_id("hit") if delivery is None else f"hit {delivery[:200]}"
    locked = _lock_active(tx, trigger_id)
    # Read under the locks: of two equal deliveries at once, the second waits for the first one's
    # transaction and then finds its firing.
    if before := triggers.firing(tx, trigger_id, slot):
        return before
    if locked is None:
        raise Refused(f"{trigger_id} accepts no requests now: it, or its team, is not active.")
    return registry.kind_of(locked[0]).on_request(tx, locked[0], slot, body)


def run_now(tx: Tx, trigger_id: TriggerId) -> Firing:
    """Fire a trigger once for a person who asks for it, also a paused one; return what came of it.

    Its schedule stays: when it is due, what it waits for, and how often it may still fire.
    """
    teams.lock(tx, TRIGGERS.get(tx, trigger_id).agent_id)
    trigger = TRIGGERS.get(tx, trigger_id, lock=True)
    if trigger.status not in ("active", "paused"):
        raise Refused(f"{trigger_id} is {trigger.status}; make a new one instead.")
    team = TEAMS.get(tx, trigger.team_id)
    if team.status not in ("active", "completed"):
        raise Refused(
            f"Team {team.name!r} is {team.status}; resume it before its triggers can run."
        )
    slot, why = new_id("hand"), "a person ran it by hand"
    done = firing.fire(tx, trigger, slot, why=why, news=BY_HAND, reason=BY_HAND)
    if done.outcome != "skipped":
        most = trigger.max_fires and trigger.max_fires + 1
        TRIGGERS.update(tx, trigger_id, gate=trigger.gate, max_fires=most)
    return done


def overdue(tx: Tx, team_id: TeamId | None = None) -> list[Trigger]:
    """Return the active triggers whose due time has passed without a firing."""
    return triggers.overdue(tx, since=tx.now - LATE_AFTER, team_id=team_id)
