"""Settings: change what a person chose when they created a team, such as its mode or its name; the
team's row follows what they write into its files SOUL.md and GOAL.md."""

import re
from dataclasses import asdict
from datetime import datetime
from typing import TypedDict, Unpack

from agiraph.core.domain.agents import (
    Agent,
    GivenFolder,
    Limits,
    Mode,
    Review,
    Rule,
    Team,
    Trust,
    name_from_goal,
)
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.team import TeamChanged, TeamResumed
from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.work import Effort, NodeStatus, WorkNode
from agiraph.core.services.board import team_hosts
from agiraph.core.services.board.texts import subject_of
from agiraph.core.services.lifecycle import continuations
from agiraph.core.services.lifecycle import teams as lifecycle
from agiraph.core.services.lifecycle.teams import check_goal
from agiraph.core.services.mail import deliveries
from agiraph.core.services.triggers import definitions, team_heartbeat
from agiraph.core.services.triggers.definitions import MIN_GAP_S
from agiraph.core.store import teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx

MIN_CYCLE_S = 30.0
"""The shortest interval of a team's cycles. A person sets it and sees what each costs."""
_HEADING = re.compile(r"\A\s*#\s*(soul|goal)\s*$", re.IGNORECASE | re.MULTILINE)
DOCUMENT_COLUMNS = {"SOUL.md": "soul", "GOAL.md": "goal"}
"""The columns that follow a file."""
_PLAIN = ("mode", "review", "trust", "folders", "effort", "muted_until", "permissions", "channel")
"""Settings that are stored as they are."""
SOUL_LIMIT = 100_000
"""Characters, because it goes into every prompt."""


class Settings(TypedDict, total=False):
    """The settings of a team that can be changed later. What is left out stays as it is."""

    name: str
    soul: str
    mode: Mode
    review: Review
    trust: Trust
    """What its agents may do by themselves after they have read untrusted text."""
    folders: tuple[GivenFolder, ...]
    """Folders of a person that its agents see, all of them; checked by `home.given_folders`."""
    effort: Effort | None
    """How much its agents' models think; None: as the settings of the installation say."""
    quiet_hours: str
    """Daily hours without briefings and browser notifications: `22:00-07:00`; empty: none."""
    quiet_zone: str
    muted_until: datetime | None
    """Until when it sends its owner nothing unasked; None: it is not muted."""
    permissions: tuple[Rule, ...]
    """Its permission rules, all of them, in order."""
    channel: str
    """The owner's channel for its questions; empty: each that sends questions."""
    answer_within_s: float
    """Seconds that its agents wait for an answer of a person; 0: for ever."""
    model: str
    """The coordinator's model."""
    interval_s: float
    """Seconds without work after which the coordinator wakes by itself; 0: never."""
    limits: dict[str, int]
    """Fields of `Limits`."""
    budget: dict[str, float]
    """New limits of the goal, by name, in total and not in addition; none below what is used."""


def change(tx: Tx, team_id: TeamId, *, by: str = OWNER, **settings: Unpack[Settings]) -> Team:
    """Change settings of a team, in any status but archived. They apply from its next step on.

    A budget is about the team's last goal; `by` is the person who gives it.
    """
    if "budget" in settings:
        # Before the team's lock: nodes are locked before their team.
        continuations.change_goal_budget(tx, team_id, settings["budget"], by=by)
    team = TEAMS.get(tx, team_id, lock=True)
    team.refuse_archived()
    columns = _columns(team, settings) | _asking_columns(tx, team, settings)
    if columns:
        TEAMS.update(tx, team_id, **columns)
    if "quiet_hours" in columns or "muted_until" in columns:
        deliveries.reschedule(tx, team.owner_id)
    if "model" in settings:
        AGENTS.update(tx, teams.coordinator(tx, team_id).id, model=settings["model"])
    changed = TEAMS.get(tx, team_id)
    _set_heartbeat(tx, team, changed, settings.get("interval_s"))
    if changed.mode != team.mode:
        _follow_mode(tx, changed)
    tx.emit(team_id, TeamChanged(changed=sorted(settings), name=changed.name, mode=changed.mode))
    return TEAMS.get(tx, team_id)


def _columns(team: Team, settings: Settings) -> dict[str, object]:
    """Return the columns of the team that the settings change, as they are stored."""
    columns: dict[str, object] = {k: value for k, value in settings.items() if k in _PLAIN}
    if "name" in settings:
        columns["name"] = settings["name"].strip() or name_from_goal(team.goal)
    if "soul" in settings:
        columns["soul"] = settings["soul"].strip()
    if "limits" in settings:
        columns["limits"] = Limits(**(asdict(team.limits) | settings["limits"]))
    return columns


def _asking_columns(tx: Tx, team: Team, settings: Settings) -> dict[str, object]:
    """Check the channel, and return the columns about when and how the team reaches its owner."""
    columns: dict[str, object] = {}
    if "quiet_hours" in settings or "quiet_zone" in settings:
        hours = settings.get("quiet_hours", team.quiet_hours).strip()
        # The hours that a person names first are those of their own clock.
        known = team.quiet_zone if team.quiet_hours else teams.zone_of_team(tx, team.id)
        zone = settings.get("quiet_zone", known)
        deliveries.check_quiet_hours(hours, zone)
        columns |= {"quiet_hours": hours, "quiet_zone": zone}
    if channel := settings.get("channel"):
        deliveries.check_channel(tx, team.owner_id, channel)
    if "answer_within_s" in settings:
        seconds = settings["answer_within_s"]
        if 0 < seconds < MIN_GAP_S:
            raise Refused(
                f"People need at least {MIN_GAP_S:.0f} seconds to answer; 0 lets agents wait "
                "for ever."
            )
        columns["answer_within_s"] = seconds or None
    return columns


def set_effort_of_agent(tx: Tx, agent_id: AgentId, effort: Effort | None) -> Agent:
    """Set how much an agent's model thinks, from its next run on; None: as for the team."""
    agent = AGENTS.get(tx, agent_id, lock=True)
    AGENTS.update(tx, agent.id, effort=effort)
    _tell_of_change(tx, agent.team_id, f"effort of {agent.name}")
    return AGENTS.get(tx, agent.id)


def set_model_of_agent(tx: Tx, agent_id: AgentId, model: str) -> Agent:
    """Give an agent another model, from its next run on."""
    agent = AGENTS.get(tx, agent_id, lock=True)
    if not agent.has_model:
        raise Refused(f"{agent.name!r} is a program and has no model. Change its command.")
    AGENTS.update(tx, agent.id, model=model)
    _tell_of_change(tx, agent.team_id, f"model of {agent.name}")
    return AGENTS.get(tx, agent.id)


def set_effort_of_node(tx: Tx, node_id: NodeId, effort: Effort | None) -> WorkNode:
    """Set how much the model thinks that works on a node, from its next run on; None: as for the
    agent."""
    node = NODES.get(tx, node_id, lock=True)
    if node.status is NodeStatus.COMPLETED or node.status is NodeStatus.CANCELLED:
        raise Refused(f"{subject_of(node)!r} is {node.status}: no model works on it any more.")
    NODES.update(tx, node.id, effort=effort)
    _tell_of_change(tx, node.team_id, f"effort of {node.id}")
    return NODES.get(tx, node.id)


def _tell_of_change(tx: Tx, team_id: TeamId, what: str) -> None:
    team = TEAMS.get(tx, team_id)
    tx.emit(team_id, TeamChanged(changed=[what], name=team.name, mode=team.mode))


def check_interval(seconds: float) -> None:
    """Refuse an interval that would wake a coordinator all the time."""
    if 0 < seconds < MIN_CYCLE_S:
        raise Refused(
            f"The interval is at least {MIN_CYCLE_S:.0f} seconds; 0 lets the coordinator act only "
            "when it is asked."
        )


def _set_heartbeat(tx: Tx, before: Team, team: Team, seconds: float | None) -> None:
    """Give the coordinator's heartbeat this interval, and the form that the team's mode needs."""
    if seconds is not None:
        check_interval(seconds)
        team_heartbeat.set_interval(tx, team, seconds=seconds)
    elif before.mode != team.mode:
        same = team_heartbeat.interval_s(tx, team.id)
        team_heartbeat.set_interval(tx, team, seconds=same)


def _follow_mode(tx: Tx, team: Team) -> None:
    """Start or end the cycles of a team whose mode has just changed.

    A completed team that becomes infinite works again. An infinite one that becomes finite is
    completed if it has reached its goal and has no open work. A stopped team stays stopped.
    """
    if team.mode == "finite" and team.status == "active":
        lifecycle.complete_again(tx, team.id)
    elif team.mode == "infinite" and team.status == "completed":
        TEAMS.update(tx, team.id, status="active")
        tx.emit(team.id, TeamResumed())
        definitions.revive(tx, team.id)


def follow_document(tx: Tx, team_id: TeamId, path: str, text: str) -> Team:
    """Set the column that follows a file to its new text, without the heading; return the team. A
    goal changes in words only: open work goes on, and no new run starts."""
    column = DOCUMENT_COLUMNS[path]
    team = TEAMS.get(tx, team_id, lock=True)
    team.refuse_archived()
    words = _HEADING.sub("", text, count=1).strip()
    if column == "goal":
        check_goal(words)
    elif len(words) > SOUL_LIMIT:
        raise Refused(
            f"The soul is longer than {SOUL_LIMIT:,} characters; put details in a note in memory/."
        )
    TEAMS.update(tx, team_id, **{column: words})
    if column == "goal":
        team_hosts.allow(tx, team_id, team.owner_id, words, CLEAN, lasts=True)
    tx.emit(team_id, TeamChanged(changed=[column], name=team.name, mode=team.mode))
    return TEAMS.get(tx, team_id)
