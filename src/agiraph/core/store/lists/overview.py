"""Overview: all teams with their members, in a fixed number of statements.

The list of teams is fetched at each start of the web UI and after many events. One statement for
each team or member would make it slow for those who have many.
"""

from collections import defaultdict
from collections.abc import Sequence, Set
from datetime import datetime
from typing import Any

from agiraph.core.domain.agents import Doing, TeamState, TeamStatus, Trust, state_of
from agiraph.core.domain.ids import AgentId, PersonId, TeamId
from agiraph.core.domain.value import value
from agiraph.core.domain.work import NodeStatus
from agiraph.core.store import events, spend
from agiraph.core.store.engine.work_stop import IS_STOPPED
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.rows import from_micros, is_among, to_micros
from agiraph.core.store.teams import KEPT
from agiraph.core.store.tx import Row, Tx

_OF_TEAMS = "team_id >= :first and team_id <= :last"
_OPEN = (
    f"select team_id, status, count(*) from nodes where {_OF_TEAMS} and lane = 'work'"
    " and status in ('pending', 'assigned', 'running', 'waiting') group by team_id, status"
)
_GOAL = (
    "(select n.status from nodes n where n.team_id = t.id and n.source = 'system'"
    " and n.parent_id is null order by n.id desc limit 1)"
)
_GOAL_END = _GOAL.replace("n.status", "n.ended_at")
_GOALS = f"select t.id, {_GOAL}, {IS_STOPPED} from teams t where t.id >= :first and t.id <= :last"
_TEAMS_WAITING = (
    "select distinct n.team_id from waits w join nodes n on n.id = w.node_id"
    " where n.team_id >= :first and n.team_id <= :last and n.lane = 'work'"
    " and w.kind in ('answer', 'approval')"
)
_TEAM_QUESTIONS = (
    f"select team_id, count(*) from messages where {_OF_TEAMS}"
    f" and {inbox_items.UNANSWERED} group by team_id"
)
_TEAM_UNREAD = (
    f"select team_id, count(*) from messages where {_OF_TEAMS} and recipient = :person"
    " and seen_at is null group by team_id"
)
_TEAM_MEMBERS = (
    f"select team_id, id from agents where {_OF_TEAMS} and retired_at is null"
    " order by case role when 'coordinator' then 0 else 1 end, id"
)


@value
class TeamCounts:
    members: tuple[AgentId, ...] = ()
    """Coordinator first, then in order of hiring."""
    working: int = 0
    """Work nodes that run now."""
    is_open: bool = False
    """Whether it has work that has not ended."""
    waits_for_person: bool = False
    """Whether work of the team waits for a person's answer or approval."""
    goal: NodeStatus | None = None
    """How its last goal stands; None: it has none."""
    is_halted: bool = False
    """Whether the work of all teams is stopped."""
    open_questions: int = 0
    """Questions and requests in the viewer's inbox that they have not answered."""
    unread: int = 0
    """Messages to the viewer that they have not read."""
    usd: float = 0.0
    head: int = 0
    """The number of the newest event."""


def read_counts(tx: Tx, first: TeamId, last: TeamId, viewer: PersonId) -> dict[TeamId, TeamCounts]:
    """Return the counts of the teams whose ids lie between two ids, both included."""
    of = {"first": first, "last": last}
    members: dict[TeamId, list[AgentId]] = defaultdict(list)
    for team, agent in tx.all(_TEAM_MEMBERS, **of):
        members[team].append(agent)
    open_work = _counts(tx.all(_OPEN, **of))
    goals = {team: (goal, bool(halted)) for team, goal, halted in tx.all(_GOALS, **of)}
    waiting = {row[0] for row in tx.all(_TEAMS_WAITING, **of)}
    questions = {
        row[0]: int(row[1])
        for row in tx.all(_TEAM_QUESTIONS, person=viewer, now=to_micros(tx.now), **of)
    }
    unread = {row[0]: int(row[1]) for row in tx.all(_TEAM_UNREAD, person=viewer, **of)}
    spent = spend.usd_by_team(tx, (first, last))
    return {
        team: TeamCounts(
            members=tuple(members[team]),
            working=open_work[team].get("running", 0),
            is_open=bool(open_work[team]),
            waits_for_person=team in waiting,
            goal=_status(goals[team][0]),
            is_halted=goals[team][1],
            open_questions=questions.get(team, 0),
            unread=unread.get(team, 0),
            usd=spent.get(team, 0.0),
            head=head,
        )
        for team, head in events.heads_of(tx, first, last).items()
    }


def _status(found: str | None) -> NodeStatus | None:
    return None if found is None else NodeStatus(found)


@value
class MemberSummary:
    """A member of a team, and what it is doing now."""

    id: AgentId
    name: str
    role: str
    doing: Doing
    unread: int
    """Messages from it that the person has not read."""
    questions: int
    """Its open questions to people."""


@value
class TeamSummary:
    """A team with its members, coordinator first."""

    id: TeamId
    name: str
    status: TeamStatus
    state: TeamState
    trust: Trust
    created_at: datetime
    active_at: datetime
    """When its agents last did something or a message came; of an archived team, the time of its
    newest event."""
    ended_at: datetime | None
    """When its last goal ended; None: it has none that has ended."""
    head: int
    """The number of its newest event."""
    members: tuple[MemberSummary, ...]
    former_members: int
    """How many agents have left the team."""
    open_questions: int
    unread: int
    usd: float
    quiet_hours: str
    quiet_zone: str
    muted_until: datetime | None


MAX_TEAMS = 1000
"""Teams in one answer: those with the newest activity."""
_NO_ACTIVITY = (
    *("message.seen", "message.filed", "briefing.rated"),
    *("team.changed", "team.paused", "team.archived", "work.stopped", "work.resumed"),
    *("grant.made", "grant.revoked"),
)
"""Events of what a person puts away or sets: the list must not move because of them."""
_TEAMS = (
    # The events of a team lie between its number and the next: the newest is found by the key.
    "select * from (select t.id, t.name, t.status, t.trust, t.quiet_hours, t.quiet_zone,"
    " t.muted_until, t.created_at, coalesce((select e.at"
    " from events e where e.place > t.number * 1099511627776"
    " and e.place < (t.number + 1) * 1099511627776 and {counted}"
    " order by e.place desc limit 1), t.created_at)"
    f" as active_at, {_GOAL_END} as ended_at, {events.NEWEST}, t.mode, {_GOAL}, {IS_STOPPED}"
    " from teams t where {which}) found"
    f" order by active_at desc, id desc limit {MAX_TEAMS}"
)
_MEMBERS = (
    "select a.team_id, a.id, a.name, a.role from agents a join teams t on t.id = a.team_id"
    " where {which} and a.retired_at is null"
    " order by case a.role when 'coordinator' then 0 else 1 end, a.id"
)
_FORMER = (
    "select a.team_id, count(*) from agents a join teams t on t.id = a.team_id"
    " where {which} and a.retired_at is not null group by a.team_id"
)
# One select for each status: each has a partial index of its own.
_BUSY = " union all ".join(
    f"select team_id, assignee_id, '{status}' from nodes"
    f" where status = '{status}' and lane = 'work'"
    for status in ("pending", "assigned", "waiting", "running")
)
_WAITING_FOR_PERSON = (
    "select distinct n.team_id, n.assignee_id from waits w join nodes n on n.id = w.node_id"
    " where n.lane = 'work' and n.status in ('running', 'waiting', 'assigned')"
    " and w.kind in ('answer', 'approval')"
)
_UNREAD = (
    "select team_id, sender, count(*) from messages"
    " where recipient = :person and seen_at is null group by team_id, sender"
)
_QUESTIONS = (
    f"select team_id, sender, count(*) from messages where {inbox_items.UNANSWERED}"
    " group by team_id, sender"
)


def read(
    tx: Tx, person_id: PersonId, *, archived: bool = False, only: Sequence[str] = ()
) -> list[TeamSummary]:
    """Return all teams as a person sees them, or only some, newest activity first; or the archived
    ones, those that were archived last first."""
    which, of = f"t.status {'=' if archived else '<>'} 'archived' and t.{KEPT}", dict[str, str]()
    if only:
        is_one, of = is_among("t.id", only, "team")
        which += f" and {is_one}"
    passive = ", ".join(f"'{each}'" for each in _NO_ACTIVITY)
    counted = "1 = 1" if archived else f"e.type not in ({passive})"
    unread = _counts(tx.all(_UNREAD, person=person_id))
    questions = _counts(tx.all(_QUESTIONS, person=person_id, now=to_micros(tx.now)))
    busy, asking = tx.all(_BUSY), tx.all(_WAITING_FOR_PERSON)
    listed = tx.all(_MEMBERS.format(which=which), **of)
    members = _members(listed, unread, questions, busy, asking)
    rows = tx.all(_TEAMS.format(which=which, counted=counted), **of)
    states = _states(rows, {team for team, *_ in busy}, {team for team, _ in asking})
    former = {team: count for team, count in tx.all(_FORMER.format(which=which), **of)}
    between = (TeamId(min(only)), TeamId(max(only))) if only else None
    spent = spend.usd_by_team(tx, between)
    return [
        TeamSummary(
            id=team,
            name=name,
            status=status,
            state=states[team],
            trust=trust,
            created_at=from_micros(made),
            active_at=from_micros(active),
            ended_at=None if ended is None else from_micros(ended),
            head=events.seq_at(newest),
            members=tuple(members[team]),
            former_members=former.get(team, 0),
            open_questions=sum(questions[team].values()),
            unread=sum(unread[team].values()),
            usd=spent.get(team, 0.0),
            quiet_hours=hours,
            quiet_zone=zone,
            muted_until=None if muted is None else from_micros(muted),
        )
        for team, name, status, trust, hours, zone, muted, made, active, ended, newest, *_ in rows
    ]


def _states(rows: Sequence[Row], open_teams: Set[str], asking: Set[str]) -> dict[TeamId, TeamState]:
    """Return the state of each team of the list."""
    return {
        team: state_of(
            status,
            mode,
            _status(goal),
            is_open=team in open_teams,
            needs_person=team in asking,
            is_halted=bool(halted),
        )
        for team, _, status, *_, mode, goal, halted in rows
    }


_Counts = dict[str, dict[str, int]]


def _counts(rows: list[Any]) -> _Counts:
    """Return rows of team, sender and count as a dictionary of dictionaries."""
    counts: _Counts = defaultdict(dict)
    for team, sender, count in rows:
        counts[team][sender] = count
    return counts


def _members(
    rows: Sequence[Row],
    unread: _Counts,
    questions: _Counts,
    busy_rows: Sequence[Row],
    asking_rows: Sequence[Row],
) -> dict[str, list[MemberSummary]]:
    """Return the members of each team, coordinator first."""
    # The statuses come in rising order: of several nodes of an agent the busiest counts.
    busy = {agent: status for _, agent, status in busy_rows}
    asking = {agent for _, agent in asking_rows}
    found: dict[str, list[MemberSummary]] = defaultdict(list)
    for team, agent, name, role in rows:
        found[team].append(
            MemberSummary(
                id=agent,
                name=name,
                role=role,
                doing=_doing(busy.get(agent), agent in asking),
                unread=unread[team].get(agent, 0),
                questions=questions[team].get(agent, 0),
            )
        )
    return found


def _doing(status: str | None, is_asking: bool) -> Doing:
    match status:
        case "running":
            return "working"
        case "waiting":
            return "waiting_for_you" if is_asking else "waiting"
        case "assigned":
            return "queued"
        case _:
            return "idle"
