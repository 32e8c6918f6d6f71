"""People: teams, the agents in them, and the roles that say what an agent may do."""

from dataclasses import field
from datetime import datetime
from typing import Literal

from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.domain.value import value

Mode = Literal["finite", "infinite"]
TeamStatus = Literal["active", "paused", "completed", "stopped", "archived"]
AgentKind = Literal["llm", "cli"]
Doing = Literal["idle", "queued", "working", "waiting", "waiting_for_you", "left"]
"""What an agent is at, as people see it."""


@value
class Limits:
    """How far a team may grow by itself."""

    depth: int = 4
    """Nodes below nodes."""
    children: int = 20
    """Unfinished nodes that one node may have made."""
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
    mode: Mode = "finite"
    status: TeamStatus = "active"
    permissions: tuple["Rule", ...] = ()
    limits: Limits = Limits()
    soul: str = ""
    """Who its members are, in the words of whoever founded it; empty: as every team is."""
    learns: bool = True
    """Whether its agents look back on their work and keep what they learned."""
    briefing_threshold: float = 0.6
    """How much a briefing must be worth to be sent; moved by what the person says of them."""
    quiet_hours: str = ""
    """When channels are left alone by briefings, such as `22:00-07:00`."""
    quiet_zone: str = "UTC"


@value
class Rule:
    """What may be called: the first rule whose tool and pattern match decides."""

    tool: str
    action: Literal["allow", "deny", "ask"]
    pattern: str = "*"
    """Compared with the call's first argument (a command, a path) by shell wildcards."""


@value
class Agent:
    """Someone who does one thing at a time. What it is doing now is a query, not a field."""

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
    identity: str = ""
    """Who it is, in its own words: its IDENTITY.md begins with them."""
    notes: str = ""
    """What it was told when it was hired: its MEMORY.md begins with them."""
    persistent: bool = True
    """An agent hired for one node leaves when that is done, unless it is promoted."""
    created_for: NodeId | None = None
    parent_thread_id: ThreadId | None = None
    retired_at: datetime | None = None


@value
class Specialist:
    """Somebody who can be hired by name, as a file describes them."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] = ()
    model: str = ""
    """Empty: the model of whoever hires them."""
    examples: tuple[str, ...] = ()
    when_not_to_use: str = ""


@value
class Role:
    """What an agent of this kind may do; data, so that a new role is a row or a file."""

    name: str
    tools: frozenset[str] = field(default_factory=frozenset[str])
    may_brief: bool = False
