"""Team events: a team's life and its members."""

from typing import ClassVar

from agiraph.core.domain.agents import AgentKind, Mode
from agiraph.core.domain.events import EventType, TeamEvent, event
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.work import NodeStatus


@event
class TeamCreated(TeamEvent):
    """A person or program created the team."""

    event_type: ClassVar[EventType] = "team.created"

    name: str
    goal: str
    mode: Mode


@event
class TeamCompleted(TeamEvent):
    """The team reached its goal and has no work left."""

    event_type: ClassVar[EventType] = "team.completed"


@event
class TeamChanged(TeamEvent):
    """A person changed the team's settings."""

    event_type: ClassVar[EventType] = "team.changed"

    changed: list[str]
    """The names of the settings that were changed."""
    name: str
    mode: Mode


@event
class TeamPaused(TeamEvent):
    """A person paused the team."""

    event_type: ClassVar[EventType] = "team.paused"


@event
class TeamResumed(TeamEvent):
    """The team is active again."""

    event_type: ClassVar[EventType] = "team.resumed"

    goal: str | None = None
    """The new goal, if the team continues because it was given one."""


@event
class TeamStopped(TeamEvent):
    """A person stopped the team, or its goal was not reached; its open work is cancelled."""

    event_type: ClassVar[EventType] = "team.stopped"

    goal_status: NodeStatus | None = None
    """How the goal ended, if that stopped the team; none if a person stopped it."""


@event
class TeamArchived(TeamEvent):
    """A person archived the team; nothing of it is deleted."""

    event_type: ClassVar[EventType] = "team.archived"


@event
class TeamDeleted(TeamEvent):
    """A person deleted the team for good. It is the team's last event."""

    event_type: ClassVar[EventType] = "team.deleted"

    name: str


@event
class TeamRestored(TeamEvent):
    """A person took the team out of the archive."""

    event_type: ClassVar[EventType] = "team.restored"


@event
class WorkStopped(TeamEvent):
    """All work of all teams was stopped at once, until it is resumed."""

    event_type: ClassVar[EventType] = "work.stopped"

    by: str
    """The name of the token that stopped the work."""


@event
class WorkResumed(TeamEvent):
    """All work goes on where it was stopped."""

    event_type: ClassVar[EventType] = "work.resumed"


@event
class GrantMade(TeamEvent):
    """A person allowed something for longer than one call."""

    event_type: ClassVar[EventType] = "grant.made"

    grant_id: str
    kind: GrantKind
    pattern: str
    from_ask: str | None = None
    """The request that the person answered with it."""


@event
class GrantUsed(TeamEvent):
    """A grant allowed a call about which a person would have been asked."""

    event_type: ClassVar[EventType] = "grant.used"

    grant_id: str
    node_id: str
    call_id: str
    tool: str


@event
class GrantRevoked(TeamEvent):
    """A person took a grant back: the next such call asks again."""

    event_type: ClassVar[EventType] = "grant.revoked"

    grant_id: str


@event
class AgentHired(TeamEvent):
    """An agent joined the team."""

    event_type: ClassVar[EventType] = "agent.hired"

    agent_id: str
    name: str
    role: str
    model: str
    kind: AgentKind
    created_for: str | None
    """The node the agent was hired for, if it leaves when that node ends."""


@event
class AgentLeft(TeamEvent):
    """An agent left the team because the node it was hired for ended."""

    event_type: ClassVar[EventType] = "agent.left"

    agent_id: str
    name: str


@event
class AgentReturned(TeamEvent):
    """An agent that had left is a member again, because it got more work."""

    event_type: ClassVar[EventType] = "agent.returned"

    agent_id: str
    name: str


@event
class AgentPromoted(TeamEvent):
    """An agent hired for one node became a permanent member."""

    event_type: ClassVar[EventType] = "agent.promoted"

    agent_id: str
    name: str
