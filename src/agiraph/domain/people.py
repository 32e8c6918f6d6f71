"""People: teams, the agents in them, and the roles that say what an agent may do."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId

Mode = Literal["finite", "infinite"]
TeamStatus = Literal["active", "paused", "completed", "stopped", "archived"]
AgentKind = Literal["llm", "cli"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A goal, a home folder and the agents who work towards it."""

    id: TeamId
    name: str
    goal: str
    created_at: datetime
    mode: Mode = "finite"
    status: TeamStatus = "active"
    permissions: tuple["Rule", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What may be called: the first rule whose tool and pattern match decides."""

    tool: str
    action: Literal["allow", "deny", "ask"]
    pattern: str = "*"
    """Compared with the call's first argument (a command, a path) by shell wildcards."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    persistent: bool = True
    created_for: NodeId | None = None
    parent_thread_id: ThreadId | None = None
    retired_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What an agent of this kind may do; data, so that a new role is a row or a file."""

    name: str
    tools: frozenset[str] = field(default_factory=frozenset[str])
    proactive: bool = False
    may_brief: bool = False
    max_depth: int = 0
