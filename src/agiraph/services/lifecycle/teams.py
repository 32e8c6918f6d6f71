"""Teams: founding one, and stopping, pausing and resuming its work."""

import re
from typing import NamedTuple

from agiraph.domain.agents import Agent, Limits, Mode, Rule, Team
from agiraph.domain.errors import Refused
from agiraph.domain.ids import SYSTEM, NodeId, TeamId, new_id
from agiraph.domain.work import Budget, NodeStatus, WorkNode
from agiraph.services.board import planning
from agiraph.services.lifecycle import endings
from agiraph.services.members import roster
from agiraph.services.triggers import definitions
from agiraph.store import nodes, teams
from agiraph.store import triggers as trigger_rows
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

GOAL_LIMIT = 100_000
HOUR = 3600.0
"""How long after its last work a coordinator wakes by itself, unless the team says otherwise."""


class Founded(NamedTuple):
    team: Team
    coordinator: Agent
    node: WorkNode | None


def found(
    tx: Tx,
    *,
    goal: str,
    model: str,
    name: str = "",
    mode: Mode = "finite",
    budget: Budget | None = None,
    permissions: tuple[Rule, ...] = (),
    tools: tuple[str, ...] = (),
    limits: Limits | None = None,
    learns: bool = True,
    soul: str = "",
    start: bool = True,
    heartbeat: float | None = HOUR,
) -> Founded:
    """A new team with its coordinator and, unless it should wait, its first piece of work."""
    check_goal(goal)
    team = Team(
        id=TeamId(new_id("team")),
        name=name.strip() or title_of(goal),
        goal=goal.strip(),
        created_at=tx.now,
        mode=mode,
        permissions=permissions,
        limits=limits or Limits(),
        learns=learns,
        soul=soul.strip(),
    )
    teams.TEAMS.insert(tx, team)
    tx.emit(team.id, "team.created", name=team.name, goal=team.goal, mode=mode)
    coordinator = roster.hire(
        tx, team.id, name="coordinator", role="coordinator", model=model, tools=tools
    )
    node = get_to_work(tx, team, coordinator, budget) if start else None
    if heartbeat is not None:
        definitions.create_team_heartbeat(tx, coordinator, seconds=heartbeat, node=node, mode=mode)
    return Founded(team, coordinator, node)


def check_goal(goal: str) -> None:
    if not goal.strip():
        raise Refused("A team needs a goal: say in a sentence or two what you want to have.")
    if len(goal) > GOAL_LIMIT:
        raise Refused(f"The goal is longer than {GOAL_LIMIT:,} characters; put details in a file.")


def get_to_work(tx: Tx, team: Team, coordinator: Agent, budget: Budget | None) -> WorkNode:
    """The first piece of work towards a goal."""
    return planning.create(
        tx,
        team_id=team.id,
        task=team.goal,
        title="Get to work on the goal",
        source="system",
        assignee_id=coordinator.id,
        budget=budget or Budget(),
    )


def pause(tx: Tx, team_id: TeamId) -> Team:
    """Let every agent stop at its next yield point. Nothing is lost."""
    return _switch(tx, team_id, to="paused", when=("active",))


def resume(tx: Tx, team_id: TeamId) -> Team:
    team = _switch(tx, team_id, to="active", when=("paused",))
    for agent in teams.members(tx, team_id):
        tx.wake(agent.id)
        tx.wake(agent.id, "reflection")
    planning.distribute(tx, team_id)  # what could start meanwhile
    return team


def stop(tx: Tx, team_id: TeamId) -> Team:
    """Cancel everything of this team that is not done; who was spoken to still answers."""
    team = _switch(tx, team_id, to="stopped", when=("active", "paused"))
    for node in nodes.still_open(tx, team_id) + nodes.still_open(tx, team_id, "reflection"):
        if not NODES.get(tx, node.id).status.is_final:
            endings.cancel(tx, node.id)
    return team


def archive(tx: Tx, team_id: TeamId) -> Team:
    """Stop a team and put it away; nothing of it is deleted."""
    if teams.TEAMS.get(tx, team_id, lock=True).status in ("active", "paused"):
        stop(tx, team_id)
    return _switch(tx, team_id, to="archived", when=("completed", "stopped"))


def aim(tx: Tx, team_id: TeamId, goal: str, *, budget: Budget | None = None) -> Team:
    """A new goal for the same team: what is open for the old one ends, what it knows stays."""
    team = teams.TEAMS.get(tx, team_id, lock=True)
    if team.status == "archived":
        raise Refused(f"Team {team.name!r} is archived; found a new one.")
    check_goal(goal)
    if team.status == "active":
        complete(tx, team_id)
    teams.TEAMS.update(tx, team_id, goal=goal.strip(), status="active")
    tx.emit(team_id, "team.resumed", goal=goal.strip())
    definitions.revive(tx, team_id)
    get_to_work(tx, teams.TEAMS.get(tx, team_id), teams.members(tx, team_id)[0], budget)
    return teams.TEAMS.get(tx, team_id)


def complete(tx: Tx, team_id: TeamId, *, unless: NodeId | None = None) -> None:
    """The goal is reached: what is still open for it is no longer needed.

    What a person asked for besides is done all the same, and delivered.
    """
    for node in nodes.still_open(tx, team_id):
        root = nodes.root(tx, node)
        is_asked_for = root.source == "user" and root.id != unless
        if node.id != unless and not is_asked_for and nodes.is_open(tx, node.id):
            endings.cancel(tx, node.id)
    _switch(tx, team_id, to="completed", when=("active", "paused"))


def close_again(tx: Tx, team_id: TeamId) -> None:
    """Complete a team that had reached its goal and was opened again for some other work.

    That is when none of its work is open and, beside the heartbeat every team has, no trigger.
    """
    goal = nodes.last_goal(tx, team_id)
    if goal is None or goal.status is not NodeStatus.COMPLETED or nodes.count_open(tx, team_id):
        return
    of_its_own = [t for t in trigger_rows.active_of_team(tx, team_id) if t.made_by != SYSTEM]
    if not of_its_own:
        _switch(tx, team_id, to="completed", when=("active",))


def _switch(tx: Tx, team_id: TeamId, *, to: str, when: tuple[str, ...]) -> Team:
    team = teams.TEAMS.get(tx, team_id, lock=True)
    if team.status == to:
        return team
    if team.status not in when:
        raise Refused(f"Team {team.name!r} is {team.status}; it cannot become {to}.")
    teams.TEAMS.update(tx, team_id, status=to)
    event = {
        "paused": "team.paused",
        "active": "team.resumed",
        "stopped": "team.stopped",
        "archived": "team.archived",
    }
    tx.emit(team_id, event.get(to, "team.completed"))  # pyright: ignore[reportArgumentType]
    if to == "active":
        definitions.resume_team(tx, team_id)
    elif to != "paused":
        definitions.end_with_team(tx, team_id, to)
    return teams.TEAMS.get(tx, team_id)


def title_of(goal: str) -> str:
    """A few words of the goal, to call the team by."""
    words = re.sub(r"\s+", " ", goal).strip()
    return words if len(words) <= 60 else words[:59].rsplit(" ", 1)[0] + "…"
