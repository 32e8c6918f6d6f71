"""Agents: teams and the folders given to them, their agents, and the roles that say what an agent
may do."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Literal

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import AgentId, NodeId, PersonId, TeamId, ThreadId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Effort, NodeStatus

Access = Literal["ro", "rw"]
GIVEN = "folders"
"""The first part of every path in a given folder, as agents and the API know it."""
MOST_FOLDERS = 16
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@value
class GivenFolder:
    """A folder that a person gave to a team. Agents see it as `folders/<name>`."""

    name: str
    path: str
    """Absolute, without a symbolic link in it."""
    access: Access = "ro"

    @property
    def is_writable(self) -> bool:
        return self.access == "rw"

    @property
    def source(self) -> str:
        """Return what a grant names that trusts the words in this folder."""
        return f"folder:{self.path}"

    def __str__(self) -> str:
        return f"{self.path}:{self.access}"


def seen_by(folders: tuple[GivenFolder, ...], *, reviews: bool) -> tuple[GivenFolder, ...]:
    """Return a team's folders as an agent sees them: a reviewer changes nothing in them."""
    return tuple(replace(one, access="ro") for one in folders) if reviews else folders


def split_access(text: str) -> tuple[str, Access]:
    """Split `PATH[:ro|rw]`; without an ending the folder can only be read."""
    if text.endswith(":rw"):
        return text[:-3], "rw"
    return text.removesuffix(":ro"), "ro"


def name_for(folder: str, taken: frozenset[str]) -> str:
    """Return the name of a folder in the team's paths: its last part, made plain and unique."""
    plain = _NAME.sub("-", folder).strip("-.") or "folder"
    number, name = 1, plain[:60]
    while name.casefold() in taken:
        number += 1
        name = f"{plain[:60]}-{number}"
    return name


Mode = Literal["finite", "infinite"]
Review = Literal["auto", "always", "never"]
"""When a reviewer judges a result: `auto` if its acceptance lines cannot be checked by machine."""
Trust = Literal["strict", "standard", "open"]
"""How much the agents of a team may do without asking a person, in threads that hold text from
outside the team. `domain.sinks` has the table of what each value allows."""
TeamStatus = Literal["active", "paused", "completed", "stopped", "archived"]
TeamState = Literal["running", "needs_you", "paused", "stopped", "failed", "done"]
"""What has become of a team, in the one word that people see of it everywhere."""
AgentKind = Literal["llm", "cli"]
Doing = Literal["idle", "queued", "working", "waiting", "waiting_for_you", "left"]
"""What an agent is doing, as people see it."""


def state_of(
    status: TeamStatus,
    mode: Mode,
    goal: NodeStatus | None,
    *,
    is_open: bool,
    needs_person: bool,
    is_halted: bool,
) -> TeamState:
    """Return the state of a team whose last goal has this status; None: it has none.

    `is_open`: some of its work has not ended; `needs_person`: some of that waits for a person's
    answer; `is_halted`: the work of all teams is stopped until a person resumes it.
    """
    is_on = is_open if status == "completed" else status == "active"
    if status == "paused" or (is_on and is_halted):
        return "paused"
    if is_on and is_open:
        return "needs_you" if needs_person else "running"
    goes_on = mode == "infinite" and goal is not NodeStatus.CANCELLED
    if status == "active" and (goes_on or goal is None or not goal.is_final):
        return "running"
    if status != "stopped" and goal is NodeStatus.COMPLETED:
        return "done"
    return "failed" if goal is NodeStatus.FAILED else "stopped"


def name_from_goal(goal: str) -> str:
    """Return the beginning of the goal as a name for the team."""
    words = re.sub(r"\s+", " ", goal).strip()
    return words if len(words) <= 60 else words[:59].rsplit(" ", 1)[0] + "…"


@value
class Limits:
    """How far a team may grow without a person's decision."""

    depth: int = 4
    """Levels of nodes below the root node."""
    children: int = 20
    """Unfinished children of one node."""
    agents: int = 16
    """Members at a time."""
    hires_per_minute: int = 30
    nodes: int = 500
    """Unfinished nodes of the whole team."""


@value
class Team:
    """A goal, a home folder and the agents who work towards it."""

    id: TeamId
    name: str
    goal: str
    created_at: datetime
    owner_id: PersonId = OWNER
    """The person who created it. They get the briefings, and what concerns no other person."""
    mode: Mode = "finite"
    status: TeamStatus = "active"
    permissions: tuple["Rule", ...] = ()
    limits: Limits = Limits()
    soul: str = ""
    """A description of the team's character, for its prompts; empty: the default one."""
    learns: bool = True
    """Whether its agents reflect on ended work and store what they learned."""
    briefing_threshold: float = 0.6
    """The score (0 to 1) a briefing needs to be sent; the person's ratings move it."""
    quiet_hours: str = ""
    """When no briefing is sent to channels, such as `22:00-07:00`."""
    quiet_zone: str = "UTC"
    muted_until: datetime | None = None
    """Until when it sends its owner nothing unasked; None: it is not muted."""
    channel: str = ""
    """The person's channel that its questions and approvals are sent to; empty: each that sends
    such messages."""
    answer_within_s: float | None = None
    """How long its agents wait for a person's answer before they go on without; None: for ever."""
    review: Review = "auto"
    """Whether a reviewer judges a result before it counts, if others build on it or a person gets
    it: always, never, or (auto) only if an acceptance line cannot be checked by a program."""
    effort: Effort | None = None
    """How much its agents' models think, unless an agent or a node says otherwise."""
    trust: Trust = "standard"
    """What its agents may do by themselves after they have read untrusted text. Only a person
    sets it; no file in the team's home is read for it."""
    folders: tuple[GivenFolder, ...] = ()
    """Folders of a person that its agents see, besides their own. Only a person gives them."""

    def refuse_archived(self) -> None:
        """Raise `Refused` if it is archived."""
        if self.status == "archived":
            raise Refused(f"Team {self.name!r} is archived; restore it first.")


@value
class Rule:
    """A permission rule: the first one whose tool and pattern match a call decides."""

    tool: str
    action: Literal["allow", "deny", "ask"]
    pattern: str = "*"
    """A shell wildcard for the call's first argument (a command, a path)."""


@value
class Agent:
    """A member of a team. It runs one node at a time in each lane; what it does now is a query."""

    id: AgentId
    team_id: TeamId
    name: str
    role: str
    model: str
    created_at: datetime
    kind: AgentKind = "llm"
    command: str | None = None
    tools: tuple[str, ...] = ()
    """Empty: all that the role grants."""
    effort: Effort | None = None
    """How much its model thinks, unless a node says otherwise; None: as for the team."""
    identity: str = ""
    """Who the agent is: the first content of its IDENTITY.md."""
    notes: str = ""
    """What it was told when it was hired: the first content of its MEMORY.md."""
    persistent: bool = True
    """An agent hired for one node leaves when that is done, unless it is promoted."""
    created_for: NodeId | None = None
    parent_thread_id: ThreadId | None = None
    retired_at: datetime | None = None
    label: Label = CLEAN
    """Of a program: where the words of its command come from, if not from the team."""

    @property
    def has_model(self) -> bool:
        """Whether a model works for it, and not a program."""
        return self.kind == "llm"


@value
class Command:
    """A program from the settings that can be hired, and the environment variables it gets."""

    command: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    resumes: bool = False
    """Whether the program continues its work when started again, so that nobody need be asked."""

    @property
    def description(self) -> str:
        sees = f" (sees {', '.join(self.environment)})" if self.environment else ""
        return self.command + sees + (" (resumes after a crash)" if self.resumes else "")


@value
class Specialist:
    """A kind of agent that can be hired by name, read from a file."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] = ()
    model: str = ""
    """Empty: the model of the agent that hires it."""
    effort: Effort | None = None
    examples: tuple[str, ...] = ()
    when_not_to_use: str = ""


@value
class Role:
    """What an agent of this kind may do; data, so that a new role is a row or a file."""

    name: str
    tools: frozenset[str] = field(default_factory=frozenset[str])
