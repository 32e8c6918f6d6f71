"""Team heartbeat: the trigger that lets a coordinator pursue the goal without being asked."""

from typing import Any

from agiraph.core.domain.agents import Agent, Mode, Team
from agiraph.core.domain.ids import SYSTEM, TeamId
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import budgets
from agiraph.core.services.triggers import definitions, firing
from agiraph.core.store import nodes, teams, triggers
from agiraph.core.store.nodes import NODES
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx


def create(
    tx: Tx, coordinator: Agent, *, seconds: float, node: WorkNode | None, mode: Mode
) -> Trigger:
    """Create the heartbeat of a team's coordinator. `node` is the team's first work, if any."""
    return definitions.create(
        tx,
        agent_id=coordinator.id,
        type="heartbeat",
        config=_config(seconds, mode),
        payload={"begun": node is not None},
        made_by=SYSTEM,
        made_in=node if node is not None and budgets.envelopes(tx, node) else None,
    ).trigger


def pay_from(tx: Tx, goal: WorkNode) -> None:
    """Let the budget of this goal pay for the team's cycles from now on; without a budget no node
    pays.

    It also pays for the cycle under way, unless another goal does.
    """
    trigger = triggers.team_heartbeat(tx, goal.team_id)
    if trigger is None:
        return
    teams.lock(tx, trigger.agent_id)  # before the trigger's row: the order of locks
    payer_id = goal.id if budgets.envelopes(tx, goal) else None
    if trigger.payer_id != payer_id:
        TRIGGERS.update(tx, trigger.id, payer_id=payer_id)
        firing.recheck_budget(tx, goal.id)  # the budget of an earlier goal may have kept it waiting
    cycle = triggers.last_node(tx, trigger.id)
    if cycle is not None and not cycle.status.is_final and cycle.payer_id is None:
        NODES.update(tx, cycle.id, payer_id=payer_id)


def _config(seconds: float, mode: Mode) -> dict[str, Any]:
    config: dict[str, Any] = {"interval_seconds": seconds, "when": "always"}
    if mode == "infinite":
        # A cycle reacts to the outside world, which the wake gate cannot see: no backoff.
        config["backoff"] = False
    return config


def find(tx: Tx, team_id: TeamId) -> Trigger | None:
    """Return the heartbeat of the team's coordinator, also if it is off while the team does not
    work. None if there is none, or if somebody switched it off."""
    trigger = triggers.team_heartbeat(tx, team_id)
    return trigger if trigger is not None and _is_kept(trigger) else None


def is_resting(tx: Tx, team_id: TeamId) -> bool:
    """Whether the team does not wake by itself now."""
    trigger = triggers.team_heartbeat(tx, team_id)
    return trigger is None or trigger.status != "active"


def _is_kept(trigger: Trigger) -> bool:
    """Tell whether a heartbeat beats, or will when its team works again."""
    is_on = trigger.status in ("active", "paused")
    return is_on or trigger.ended_with is not None


def interval_s(tx: Tx, team_id: TeamId) -> float:
    """Return after how many seconds without work the coordinator wakes by itself; 0: never."""
    return intervals_s(tx, team_id, team_id).get(team_id, 0.0)


def intervals_s(tx: Tx, first: TeamId, last: TeamId) -> dict[TeamId, float]:
    """Return the coordinator's wake-up interval in seconds for each team from `first` to `last`.

    Teams whose coordinator never wakes by itself are left out.
    """
    return {
        team: float(trigger.config["interval_seconds"])
        for team, trigger in triggers.team_heartbeats(tx, first, last).items()
        if _is_kept(trigger)
    }


def set_interval(tx: Tx, team: Team, *, seconds: float) -> None:
    """Set after how many seconds without work the coordinator wakes by itself; 0: never.

    The heartbeat of a team that has ended takes effect when the team works again.
    """
    found = find(tx, team.id)
    if found is None and seconds > 0:
        _create_later(tx, team, seconds)
    elif found is None:
        pass
    elif found.status not in ("active", "paused"):
        teams.lock(tx, found.agent_id)
        if seconds > 0:
            TRIGGERS.update(tx, found.id, config=_config(seconds, team.mode))
        else:  # it will not be revived with its team
            TRIGGERS.update(tx, found.id, ended="it was switched off", ended_with=None)
    elif seconds > 0:
        definitions.change(tx, found.id, config=_config(seconds, team.mode))
    else:
        definitions.cancel(tx, found.id)


def _create_later(tx: Tx, team: Team, seconds: float) -> None:
    """Create a heartbeat for a team without one; a completed team's rests until it works again."""
    goal = nodes.last_goal(tx, team.id)
    coordinator = teams.coordinator(tx, team.id)
    trigger = create(tx, coordinator, seconds=seconds, node=goal, mode=team.mode)
    if team.status == "completed":
        why = "the team was completed"
        firing.end(tx, trigger, "expired", why, ended_with="completed")
