"""Teams: create a team, set its goal, and pause, resume, stop, complete, archive or restore it; end
all work of a team, or stop the work of all teams until a person resumes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack

import orjson
from pydantic import TypeAdapter

from agiraph.core.domain.agents import (
    Agent,
    GivenFolder,
    Limits,
    Mode,
    Review,
    Rule,
    Team,
    TeamStatus,
    Trust,
    name_from_goal,
)
from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events import TeamEvent
from agiraph.core.domain.events.team import (
    TeamArchived,
    TeamCompleted,
    TeamCreated,
    TeamPaused,
    TeamRestored,
    TeamResumed,
    TeamStopped,
    WorkResumed,
    WorkStopped,
)
from agiraph.core.domain.ids import NodeId, PersonId, TeamId, new_id
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value
from agiraph.core.domain.work import (
    GOAL_TURNS,
    Budget,
    Effort,
    Lane,
    Line,
    NodeStatus,
    Queue,
    WorkNode,
)
from agiraph.core.services.board import acceptance_lines, budgets, planning, team_hosts, texts
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions, firing, team_heartbeat
from agiraph.core.store import nodes, teams
from agiraph.core.store.engine import work_stop
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS, at_work, kept
from agiraph.core.store.tx import Tx

GOAL_LIMIT = 100_000
HOUR = 3600.0
"""Seconds after its last work at which a coordinator's heartbeat wakes it, by default."""
LANES: tuple[Lane, ...] = ("work", "reply", "reflection")
MOST_LISTED = 100
"""Interrupted tasks that are listed by name."""


class NewTeam(NamedTuple):
    """A team that was just created; `node` is its first work, if it was to start at once."""

    team: Team
    coordinator: Agent
    node: WorkNode | None


class GoalDetails(TypedDict, total=False):
    """What a person gives a goal with."""

    budget: Budget | None
    acceptance: Sequence[str | Line]
    """What done means; without any, the coordinator writes it down."""
    attachments: tuple[Attachment, ...]
    """Files that the coordinator's first turn has."""
    label: Label
    """Of a goal that a program wrote for the person."""


class TeamDetails(GoalDetails, total=False):
    """Fields of `Team` that a new team takes over as they are, and the details of its goal."""

    mode: Mode
    permissions: tuple[Rule, ...]
    limits: Limits | None
    learns: bool
    soul: str
    review: Review
    trust: Trust
    folders: tuple[GivenFolder, ...]
    effort: Effort | None


def create(
    tx: Tx,
    *,
    owner_id: PersonId,
    goal: str,
    model: str,
    name: str = "",
    tools: tuple[str, ...] = (),
    start: bool = True,
    heartbeat: float | None = HOUR,
    **details: Unpack[TeamDetails],
) -> NewTeam:
    """Create a team with a coordinator, its heartbeat and, if `start`, the node of its goal."""
    check_goal(goal)
    if details.get("acceptance") and not start:
        raise Refused("Acceptance lines belong to a goal: give them when the team starts with it.")
    if details.get("attachments") and not start:
        raise Refused("Attachments belong to a goal: give them when the team starts with it.")
    given: dict[str, Any] = {n: v for n, v in details.items() if v is not None}
    of_goal = {name: given.pop(name) for name in GoalDetails.__annotations__ if name in given}
    team = Team(
        id=TeamId(new_id("team")),
        name=name.strip() or name_from_goal(goal),
        goal=goal.strip(),
        created_at=tx.now,
        owner_id=owner_id,
        soul=given.pop("soul", "").strip(),
        **given,
    )
    teams.TEAMS.insert(tx, team)
    tx.emit(team.id, TeamCreated(name=team.name, goal=team.goal, mode=team.mode))
    team_hosts.allow(tx, team.id, owner_id, team.goal, of_goal.get("label", CLEAN), lasts=True)
    coordinator = roster.hire(
        tx, team.id, name="coordinator", role="coordinator", model=model, tools=tools
    )
    node = start_goal(tx, team, coordinator, **of_goal) if start else None
    if heartbeat:
        team_heartbeat.create(tx, coordinator, seconds=heartbeat, node=node, mode=team.mode)
    return NewTeam(team, coordinator, node)


def check_goal(goal: str) -> None:
    """Refuse a goal that is empty or too long for a prompt."""
    if not goal.strip():
        raise Refused("A team needs a goal: say in a sentence or two what you want to have.")
    if len(goal) > GOAL_LIMIT:
        raise Refused(f"The goal is longer than {GOAL_LIMIT:,} characters; put details in a file.")


def start_goal(tx: Tx, team: Team, coordinator: Agent, **given: Unpack[GoalDetails]) -> WorkNode:
    """Create the node of the team's goal with its files, assigned to the coordinator."""
    lines, kinds = acceptance_lines.checked(given.get("acceptance", ()))
    node = planning.create(
        tx,
        team_id=team.id,
        task=team.goal,
        title=texts.GOAL_TITLE,
        source="system",
        creator_id=team.owner_id,
        assignee_id=coordinator.id,
        budget=replace(given.get("budget") or Budget(turns=GOAL_TURNS), chosen={}),
        acceptance=lines,
        line_kinds=kinds,
        given_lines=len(lines),
        label=given.get("label", CLEAN),
    )
    if attachments := given.get("attachments"):
        _attach(tx, node, coordinator, attachments)
    return node


def _attach(
    tx: Tx, goal: WorkNode, coordinator: Agent, attachments: tuple[Attachment, ...]
) -> None:
    """Store a person's files as a message that belongs to the goal. It is no mail: the first turn
    of the goal has the files of its node's messages."""
    one = len(attachments) == 1
    bus.send(
        tx,
        Draft(
            team_id=goal.team_id,
            sender=goal.creator_id,
            recipient=coordinator.id,
            kind="nudge",
            text=f"{'This file belongs' if one else 'These files belong'} to the goal.",
            node_id=goal.id,
            attachments=attachments,
        ),
        is_mail=False,
    )


def pause(tx: Tx, team_id: TeamId) -> Team:
    """Make every agent stop at its next yield point, until the team is resumed.

    A completed team may have open work, too, and what is scheduled.
    """
    return _switch(tx, team_id, to="paused", when=("active", "completed"))


def resume(tx: Tx, team_id: TeamId) -> Team:
    """Make a paused team active again and wake its agents."""
    team = _switch(tx, team_id, to="active", when=("paused",))
    for agent in teams.members(tx, team_id):
        tx.wake(agent.id)
        tx.wake(agent.id, "reflection")
    planning.assign_unowned(tx, team_id)  # dependencies may have been met during the pause
    # The goal, or the last work beside it, may have ended before or during the pause.
    goal = nodes.last_goal(tx, team_id)
    if goal is not None and goal.status is NodeStatus.COMPLETED and team.mode == "finite":
        complete_again(tx, team_id)
    elif goal is not None and goal.status in (NodeStatus.PARTIAL, NodeStatus.FAILED):
        close_after(tx, goal)
    return teams.TEAMS.get(tx, team_id)


def stop(
    tx: Tx, team_id: TeamId, *, by: str | None = None, goal_status: NodeStatus | None = None
) -> Team:
    """Stop a team and cancel its open work and reflections; replies to the person still run.

    `by` is the person who stops it; `goal_status` says how its goal ended, if that is why.
    """
    stopped = TeamStopped(goal_status=goal_status)
    team = _switch(tx, team_id, to="stopped", when=("active", "paused"), event=stopped)
    for node in nodes.still_open(tx, team_id) + nodes.still_open(tx, team_id, "reflection"):
        # The cancel of a node above may have ended it in this loop.
        if not NODES.get(tx, node.id).status.is_final:
            endings.cancel(tx, node.id, by=by)
    return team


def reactivate(tx: Tx, team_id: TeamId) -> None:
    """Set a completed or stopped team to active again, because there is new work."""
    team = teams.TEAMS.get(tx, team_id, lock=True)
    if team.status in ("completed", "stopped"):
        teams.TEAMS.update(tx, team.id, status="active")
        tx.emit(team.id, TeamResumed())
        definitions.revive(tx, team.id)


def archive(tx: Tx, team_id: TeamId, *, by: str | None = None) -> Team:
    """Stop a team and take it off the list; its rows and files stay, and it can be restored."""
    if teams.TEAMS.get(tx, team_id, lock=True).status in ("active", "paused"):
        stop(tx, team_id, by=by)
    return _switch(tx, team_id, to="archived", when=("completed", "stopped"))


def restore(tx: Tx, team_id: TeamId) -> Team:
    """Take a team out of the archive: it is completed or stopped, as its last goal ended.

    Work that the archiving cancelled stays cancelled; a message or a new goal starts new work. What
    was scheduled for a completed team is scheduled again.
    """
    team = teams.TEAMS.get(tx, team_id, lock=True)
    if team.status != "archived":
        return team
    goal = nodes.last_goal(tx, team_id)
    is_reached = goal is not None and goal.status is NodeStatus.COMPLETED
    teams.TEAMS.update(tx, team_id, status="completed" if is_reached else "stopped")
    tx.emit(team_id, TeamRestored())
    if is_reached:
        definitions.revive(tx, team_id, ended_as=("archived",))
    return teams.TEAMS.get(tx, team_id)


def set_goal(
    tx: Tx,
    team_id: TeamId,
    goal: str,
    *,
    budget: Budget | None = None,
    acceptance: Sequence[str | Line] = (),
    attachments: tuple[Attachment, ...] = (),
) -> Team:
    """Give a team a new goal: cancel the work on the old one, keep what the team knows.

    Without a budget the goal gets the limits of the team's last goal. The first turn of the work on
    it has the attachments.
    """
    team = teams.TEAMS.get(tx, team_id, lock=True)
    team.refuse_archived()
    check_goal(goal)
    if team.status == "active":
        complete(tx, team_id)
    teams.TEAMS.update(tx, team_id, goal=goal.strip(), status="active")
    tx.emit(team_id, TeamResumed(goal=goal.strip()))
    definitions.revive(tx, team_id, with_goal=True)
    coordinator = teams.coordinator(tx, team_id)
    budget = budget or budgets.for_next_goal(tx, team_id, {})
    aimed = teams.TEAMS.get(tx, team_id)
    details: GoalDetails = {
        "budget": budget,
        "acceptance": acceptance,
        "attachments": attachments,
    }
    node = start_goal(tx, aimed, coordinator, **details)
    team_heartbeat.pay_from(tx, node)
    firing.pay_from(tx, node)
    return teams.TEAMS.get(tx, team_id)


def complete(tx: Tx, team_id: TeamId, *, unless: NodeId | None = None) -> None:
    """Complete a team and cancel what belongs to an earlier goal.

    Work that a person or a trigger asked for runs on and is delivered. So do tasks below `unless`,
    the node of the goal: its doubts name them. Tasks among them that can no longer start end.
    """
    for node in nodes.still_open(tx, team_id):
        # A person or a trigger asked for it and waits for it, whatever becomes of the goal.
        root = nodes.root(tx, node)
        is_wanted = root.source in ("user", "trigger") or root.id == unless
        if not is_wanted and nodes.is_open(tx, node.id):
            endings.cancel(tx, node.id)
    endings.end_unstartable(tx, team_id)
    _switch(tx, team_id, to="completed", when=("active", "paused"))


def close_after(tx: Tx, node: WorkNode) -> None:
    """Complete or stop a finite team if the node that has just ended was the last it needed.

    Only a root node in the work lane decides: the node of the goal completes the team when it
    succeeds, and stops it when it fails and no other work is open. A partial goal stops it when
    the last of the tasks that ran on below it has ended; an extension reopens it.
    """
    team = teams.TEAMS.get(tx, node.team_id)
    if team.mode != "finite" or team.status != "active" or not node.is_work:
        return
    if node.parent_id is not None:
        return _close_after_part(tx, team.id)
    if not node.is_goal:
        complete_again(tx, team.id)
    elif node.status is NodeStatus.COMPLETED:
        complete(tx, team.id, unless=node.id)
    elif node.status is NodeStatus.PARTIAL:
        _close_after_part(tx, team.id)
    elif not nodes.any_open_beside(tx, node):
        stop(tx, team.id, goal_status=node.status)


def _close_after_part(tx: Tx, team_id: TeamId) -> None:
    """Stop a team whose goal ended as partial, and complete one that was paused after its goal was
    reached, unless it has open work."""
    goal = nodes.last_goal(tx, team_id)
    if goal is not None and goal.status is NodeStatus.COMPLETED:
        return complete_again(tx, team_id)
    if goal is None or goal.status is not NodeStatus.PARTIAL:
        return None
    endings.end_unstartable(tx, team_id)
    # A running node whose cancellation was requested ends by itself.
    if all(node.cancel_requested for node in nodes.still_open(tx, team_id)):
        stop(tx, team_id, goal_status=goal.status)
    return None


def complete_again(tx: Tx, team_id: TeamId) -> None:
    """Complete a team again that had reached its goal and was reactivated for other work.

    Nothing happens while it has open work. What is scheduled reactivates the team once more.
    """
    goal = nodes.last_goal(tx, team_id)
    if goal is None or goal.status is not NodeStatus.COMPLETED or nodes.count_open(tx, team_id):
        return
    _switch(tx, team_id, to="completed", when=("active",))


_SWITCHED: dict[TeamStatus, Callable[[], TeamEvent]] = {
    "active": TeamResumed,
    "paused": TeamPaused,
    "completed": TeamCompleted,
    "archived": TeamArchived,
}
"""The event of each status that a team can change to, unless the caller's event says more."""


def _switch(
    tx: Tx,
    team_id: TeamId,
    *,
    to: TeamStatus,
    when: tuple[str, ...],
    event: TeamEvent | None = None,
) -> Team:
    """Lock the team's row, set its status and return the team; `Refused` unless it is in `when`.

    An active team's triggers are armed again. The triggers of a stopped or archived team end. Of a
    completed team's triggers only the heartbeat ends.
    """
    team = teams.TEAMS.get(tx, team_id, lock=True)
    if team.status == to:
        return team
    if team.status not in when:
        raise Refused(f"Team {team.name!r} is {team.status}; it cannot become {to}.")
    teams.TEAMS.update(tx, team_id, status=to)
    tx.emit(team_id, event or _SWITCHED[to]())
    if to == "active":
        definitions.resume_team(tx, team_id)
    elif to != "paused":
        definitions.end_with_team(tx, team_id, to)
    return teams.TEAMS.get(tx, team_id)


@value
class InterruptedTask:
    """A task that was running when all work was stopped."""

    team_id: str
    team: str
    agent_id: str
    agent: str
    node_id: str
    title: str
    lane: Lane


@value
class WorkStop:
    """An emergency stop that is in force."""

    at: datetime
    by: str
    """The name of the token that stopped the work, with its id."""
    running: int
    """Tasks that were interrupted."""
    queued: int
    """Tasks that were ready to run."""
    interrupted: tuple[InterruptedTask, ...] = ()
    told: tuple[str, ...] = ()
    """The teams whose history has the stop, which must get its end too."""
    token_id: str | None = None
    """None: the owner's token."""


_STORED = TypeAdapter(WorkStop)


def halt(tx: Tx, team_id: TeamId, *, by: str | None = None) -> int:
    """Stop a team and cancel all its open nodes in every lane; return how many there were.

    Runners are notified at once. They kill their commands with all processes these started.
    """
    is_on = TEAMS.get(tx, team_id, lock=True).status in ("active", "paused")
    found = [node for lane in LANES for node in nodes.still_open(tx, team_id, lane)]
    if is_on:
        stop(tx, team_id, by=by)
    for node in found:
        # `stop`, or the cancel of a node above, may have ended it.
        if nodes.is_open(tx, node.id):
            endings.cancel(tx, node.id, by=by)
    return len(found)


def stop_all(tx: Tx, *, by: str, token_id: str | None = None) -> WorkStop:
    """Interrupt every run of every team, and let none begin until `resume_all`.

    Nothing is cancelled: each runner ends its commands and puts its node back into the queue. The
    stop is a row, so it holds for all processes and after a restart. While work is stopped, this
    returns the stop that is in force.
    """
    if (before := found_stop(tx)) is not None:
        return before
    running = nodes.all_running(tx)
    stop = WorkStop(
        at=tx.now,
        by=by,
        running=len(running),
        queued=nodes.count_assigned(tx),
        interrupted=tuple(_interrupted(tx, node) for node in running[:MOST_LISTED]),
        told=tuple(at_work(tx)),
        token_id=token_id,
    )
    if not work_stop.begin(tx, orjson.dumps(asdict(stop)).decode()):
        # Another process stopped the work in the same moment.
        other = found_stop(tx)
        assert other is not None
        return other
    for node in running:
        assert node.assignee_id is not None
        tx.cancel(node.assignee_id, node.lane)
    for team_id in stop.told:
        tx.emit(TeamId(team_id), WorkStopped(by=by))
    return stop


def found_stop(tx: Tx) -> WorkStop | None:
    """Return the emergency stop that is in force; None if work may run."""
    noted = work_stop.find(tx)
    return None if noted is None else _STORED.validate_json(noted)


def resume_all(tx: Tx) -> int:
    """End the emergency stop and wake every queue with work; return how many queues these are."""
    stop = found_stop(tx)
    if stop is None or not work_stop.end(tx):
        return 0
    queues: list[Queue] = nodes.queues(tx)
    for queue in queues:
        tx.wake(*queue)
    # Also teams that were stopped or archived meanwhile: their history has the beginning.
    for team_id in sorted(kept(tx).intersection(stop.told).union(at_work(tx))):
        tx.emit(team_id, WorkResumed())
    return len(queues)


def _interrupted(tx: Tx, node: WorkNode) -> InterruptedTask:
    assert node.assignee_id is not None
    return InterruptedTask(
        team_id=node.team_id,
        team=TEAMS.get(tx, node.team_id).name,
        agent_id=node.assignee_id,
        agent=AGENTS.get(tx, node.assignee_id).name,
        node_id=node.id,
        title=texts.subject_of(node),
        lane=node.lane,
    )
