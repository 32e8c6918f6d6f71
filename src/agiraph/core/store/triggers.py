"""Triggers: their rows, the outcome of each slot, and errands outside the database."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from string import ascii_lowercase
from typing import Any, NamedTuple

from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId, TriggerId
from agiraph.core.domain.triggers import Firing, Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.store import events
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import Table, from_json, to_micros
from agiraph.core.store.spend import Total
from agiraph.core.store.tx import Tx

TRIGGERS = Table("triggers", Trigger)
FIRINGS = Table("firings", Firing, key="trigger_id")
ERRAND_SECONDS = 60
"""After this long, an errand that was taken and not reported as done may be taken again."""


def of_team(tx: Tx, team_id: TeamId) -> list[Trigger]:
    return TRIGGERS.select(tx, "team_id = :team_id order by created_at, id", team_id=team_id)


def active_of_team(tx: Tx, team_id: TeamId) -> list[Trigger]:
    where = "team_id = :team_id and status = 'active' order by id"
    return TRIGGERS.select(tx, where, team_id=team_id)


def team_heartbeat(tx: Tx, team_id: TeamId) -> Trigger | None:
    """Return the newest heartbeat that the runtime created for a team, whatever its status."""
    return team_heartbeats(tx, team_id, team_id).get(team_id)


def team_heartbeats(tx: Tx, first: TeamId, last: TeamId) -> dict[TeamId, Trigger]:
    """Return the newest heartbeat that the runtime created, of each team whose id lies between two
    ids."""
    where = (
        "team_id >= :first and team_id <= :last and made_by = :system and type = 'heartbeat'"
        " order by created_at, id"
    )
    found = TRIGGERS.select(tx, where, first=first, last=last, system=SYSTEM)
    return {trigger.team_id: trigger for trigger in found}


def active_of_agent(tx: Tx, agent_id: AgentId) -> list[Trigger]:
    where = "agent_id = :agent_id and status = 'active' order by id"
    return TRIGGERS.select(tx, where, agent_id=agent_id)


def count_made(tx: Tx, agent_id: AgentId) -> int:
    """Return how many active triggers this agent has made for itself."""
    row = tx.one(
        "select count(*) from triggers where agent_id = :id and status = 'active'"
        " and made_by = :id",
        id=agent_id,
    )
    return 0 if row is None else int(row[0])


def labelled(tx: Tx, team_id: TeamId) -> list[Trigger]:
    """Return the open triggers of a team that were created in threads with untrusted text."""
    where = (
        "team_id = :team_id and label is not null and status in ('active', 'paused')"
        " order by created_at, id"
    )
    return TRIGGERS.select(tx, where, team_id=team_id)


def count_labelled(tx: Tx, agent_id: AgentId) -> int:
    """Return how many open triggers this agent has made in threads with untrusted text."""
    row = tx.one(
        "select count(*) from triggers where agent_id = :id and made_by = :id"
        " and label is not null and status in ('active', 'paused')",
        id=agent_id,
    )
    return 0 if row is None else int(row[0])


def labelled_moments(tx: Tx, agent_id: AgentId) -> list[datetime]:
    """Return the next and the last firing times of the triggers that this agent made for itself and
    that carry a label, as the thread that made them had read untrusted text."""
    where = "agent_id = :id and made_by = :id and label is not null"
    found = TRIGGERS.select(tx, f"{where} order by created_at desc limit 100", id=agent_id)
    moments = (moment for trigger in found for moment in (trigger.due_at, trigger.fired_at))
    return [moment for moment in moments if moment is not None]


def bounded_fired_at(tx: Tx, trigger: Trigger) -> datetime | None:
    """Return when a trigger for one time like this one last fired, which its agent made in a thread
    with untrusted text; None if there is none, or if this one has no such bounds."""
    is_own = trigger.made_by == trigger.agent_id
    if not trigger.label or not is_own or trigger.confirmed_at is not None:
        return None
    # Not those that fire again and again: they would put this one off for good.
    where = (
        "agent_id = :id and made_by = :id and label is not null and fired_at is not null"
        " and type in ('delayed', 'at_time') order by fired_at desc limit 1"
    )
    found = TRIGGERS.select(tx, where, id=trigger.agent_id)
    return found[0].fired_at if found else None


def overdue(tx: Tx, *, since: datetime, team_id: TeamId | None = None) -> list[Trigger]:
    """Return active triggers of active and completed teams that were due before that moment, and
    are not put off to a later one."""
    where = (
        "status = 'active' and due_at < :since and exists (select 1 from teams t"
        " where t.id = triggers.team_id and t.status in ('active', 'completed'))"
        " and not exists (select 1 from timers t"
        " where t.kind = 'trigger' and t.subject = triggers.id and t.due_at >= :since)"
        + ("" if team_id is None else " and team_id = :team_id")
        + " order by due_at"
    )
    named = {} if team_id is None else {"team_id": team_id}
    return TRIGGERS.select(tx, where, since=to_micros(since), **named)


def promised(tx: Tx, agent_id: AgentId) -> list[Trigger]:
    where = "agent_id = :agent_id and promised_to is not null order by created_at, id"
    return TRIGGERS.select(tx, where, agent_id=agent_id)


# ---- firings -------------------------------------------------------------------------------


def firing(tx: Tx, trigger_id: TriggerId, slot: str) -> Firing | None:
    found = FIRINGS.select(tx, "trigger_id = :id and slot = :slot", id=trigger_id, slot=slot)
    return found[0] if found else None


def firings(tx: Tx, trigger_id: TriggerId, *, limit: int = 100) -> list[Firing]:
    """Return the outcomes of a trigger's slots, latest first."""
    where = "trigger_id = :id order by at desc, slot desc limit :limit"
    return FIRINGS.select(tx, where, id=trigger_id, limit=limit)


def close_firing(tx: Tx, trigger_id: TriggerId, slot: str, *, outcome: str, reason: str) -> bool:
    """Record the outcome of a callback; return False if it is recorded already."""
    sql = (
        # A callback that outlasts `ERRAND_SECONDS` may be called by a second process. The first
        # report counts; the other matches no row.
        "update firings set outcome = :outcome, reason = :reason"
        " where trigger_id = :id and slot = :slot and outcome = 'calling'"
    )
    return tx.run(sql, id=trigger_id, slot=slot, outcome=outcome, reason=reason) == 1


# ---- the work they set off -----------------------------------------------------------------


def is_unfinished(tx: Tx, trigger_id: TriggerId) -> bool:
    """Return whether work that the trigger started is still open."""
    sql = (
        "select 1 from nodes where trigger_id = :id"
        " and status in ('pending', 'assigned', 'running', 'waiting') limit 1"
    )
    return tx.one(sql, id=trigger_id) is not None


def last_node(tx: Tx, trigger_id: TriggerId) -> WorkNode | None:
    found = NODES.select(tx, "trigger_id = :id order by id desc limit 1", id=trigger_id)
    return found[0] if found else None


def count_nothing_to_do(tx: Tx, trigger_id: TriggerId) -> int:
    """Return how often the trigger started work in which there was nothing to do."""
    sql = "select count(*) from nodes where trigger_id = :id and stop_reason = 'nothing_to_do'"
    row = tx.one(sql, id=trigger_id)
    return 0 if row is None else int(row[0])


def led_to(tx: Tx, trigger_id: TriggerId, node_id: str) -> bool:
    """Return whether the trigger started this node or one of its ancestors."""
    sql = (
        "with recursive above(id, parent_id, trigger_id) as ("
        "select id, parent_id, trigger_id from nodes where id = :node"
        " union all select n.id, n.parent_id, n.trigger_id from nodes n"
        " join above a on n.id = a.parent_id)"
        " select 1 from above where trigger_id = :trigger limit 1"
    )
    return tx.one(sql, node=node_id, trigger=trigger_id) is not None


def ended_since(tx: Tx, agent: tuple[TeamId, AgentId], moment: datetime) -> list[WorkNode]:
    """Return up to 20 work nodes of other agents that ended after that moment."""
    team_id, agent_id = agent
    where = (
        "team_id = :team_id and ended_at > :moment and lane = 'work'"
        " and (assignee_id is null or assignee_id <> :agent_id) order by ended_at limit 20"
    )
    return NODES.select(tx, where, team_id=team_id, agent_id=agent_id, moment=to_micros(moment))


def cost(tx: Tx, trigger_id: TriggerId) -> Total:
    """Return the cost of the work that the trigger started, with all nodes below it."""
    row = tx.one(
        "with recursive tree(id) as (select id from nodes where trigger_id = :id"
        " union select n.id from nodes n join tree t on n.parent_id = t.id or n.payer_id = t.id)"
        " select coalesce(sum(calls + lost), 0), coalesce(sum(input_tokens + output_tokens), 0),"
        " coalesce(sum(usd), 0.0) from spend where node_id in (select id from tree)",
        id=trigger_id,
    )
    assert row is not None
    return Total(calls=int(row[0]), tokens=int(row[1]), usd=float(row[2]))


# ---- events --------------------------------------------------------------------------------


class EventFollower(NamedTuple):
    """A trigger that reads the events of its team."""

    team_id: TeamId
    trigger_id: TriggerId
    type: str
    config: dict[str, Any]
    is_behind: bool
    """Whether the team has events after the trigger's cursor."""


def event_followers(tx: Tx, types: Sequence[str]) -> list[EventFollower]:
    """Return the active triggers of these types in active and completed teams."""
    # Letters, not numbers: the name of a parameter consists of letters and underscores (`_NAMED`).
    named = {f"type_{letter}": type for letter, type in zip(ascii_lowercase, types, strict=False)}
    rows = tx.all(
        "select r.team_id, r.id, r.type, r.config, r.cursor + t.number * 1099511627776 < coalesce("
        "(select max(place) from events where place > t.number * 1099511627776"
        " and place < (t.number + 1) * 1099511627776), 0)"
        " from triggers r join teams t on t.id = r.team_id"
        f" where r.status = 'active' and r.type in ({', '.join(f':{name}' for name in named)})"
        " and t.status in ('active', 'completed') order by r.id",
        **named,
    )
    return [EventFollower(row[0], row[1], row[2], from_json(row[3]), bool(row[4])) for row in rows]


def events_after_cursor(tx: Tx, trigger: Trigger, pattern: str, *, limit: int) -> Sequence[Event]:
    """Return events after the trigger's cursor whose type may match, oldest first."""
    # LIKE is wider than the pattern: `_` matches any character. `OnEvent` matches each type again.
    like = pattern.replace("*", "%").replace("?", "_")
    return events.after(tx, trigger.team_id, trigger.cursor, limit=limit, like=like)


# ---- errands --------------------------------------------------------------------


class Errand(NamedTuple):
    """A file check or a callback that a trigger's slot needs, done outside the transaction."""

    id: str
    trigger_id: TriggerId
    slot: str


def leave_errand(tx: Tx, errand: Errand) -> None:
    """Add an errand, and wake the trigger worker that does it."""
    tx.run(
        # A heartbeat that is due again before its files were read needs no second errand.
        "insert into errands (id, trigger_id, slot, created_at, taken_at)"
        " values (:id, :trigger_id, :slot, :now, null) on conflict (id) do nothing",
        now=to_micros(tx.now),
        **errand._asdict(),
    )
    tx.alarm()


def open_errands(tx: Tx, *, limit: int = 100) -> list[Errand]:
    """Return errands that are not taken, or were taken too long ago."""
    rows = tx.all(
        "select id, trigger_id, slot from errands where taken_at is null or taken_at <= :stale"
        " order by created_at limit :limit",
        stale=to_micros(tx.now - timedelta(seconds=ERRAND_SECONDS)),
        limit=limit,
    )
    return [Errand(*row) for row in rows]


def take_errand(tx: Tx, errand_id: str) -> bool:
    """Take an errand; return False if another process has it."""
    sql = (
        # The condition is part of the update, so of two processes only one takes the errand.
        "update errands set taken_at = :now where id = :id"
        " and (taken_at is null or taken_at <= :stale)"
    )
    stale = to_micros(tx.now - timedelta(seconds=ERRAND_SECONDS))
    return tx.run(sql, id=errand_id, now=to_micros(tx.now), stale=stale) == 1


def drop_errand(tx: Tx, errand_id: str) -> bool:
    return tx.run("delete from errands where id = :id", id=errand_id) == 1


def drop_errands(tx: Tx, trigger_id: TriggerId) -> None:
    """Delete the request to compare the files that an ending trigger watches.

    A request to call the embedding program's function stays: its firing is recorded already.
    """
    tx.run("delete from errands where id = :id", id=file_check_of(trigger_id).id)


def file_check_of(trigger_id: TriggerId) -> Errand:
    return Errand(f"look:{trigger_id}", trigger_id, "")


def release_errands(tx: Tx) -> int:
    """Let errands be taken again. Only for a runtime that is alone on the database."""
    return tx.run("update errands set taken_at = null where taken_at is not null")


def payer(tx: Tx, trigger: Trigger) -> WorkNode | None:
    return None if trigger.payer_id is None else NODES.get(tx, NodeId(trigger.payer_id))


def gated(tx: Tx, payer_id: NodeId) -> list[Trigger]:
    """Return the active triggers, paid from this node, that waited when they were last due."""
    where = "payer_id = :payer and status = 'active' and gate is not null order by id"
    return TRIGGERS.select(tx, where, payer=payer_id)
