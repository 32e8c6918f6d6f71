"""Team counts: how much each team of a page holds, in a fixed number of statements."""

from collections import defaultdict

from agiraph.core.domain.ids import AgentId, PersonId, TeamId
from agiraph.core.domain.value import value
from agiraph.core.store import events, spend
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.rows import to_micros
from agiraph.core.store.tx import Tx

_OF_TEAMS = "team_id >= :first and team_id <= :last"
_WORKING = (
    f"select team_id, count(*) from nodes where {_OF_TEAMS} and lane = 'work'"
    " and status = 'running' group by team_id"
)
_WAITING_FOR_PERSON = (
    "select distinct n.team_id from waits w join nodes n on n.id = w.node_id"
    " where n.team_id >= :first and n.team_id <= :last and n.lane = 'work'"
    " and w.kind in ('answer', 'approval')"
)
_QUESTIONS = (
    f"select team_id, count(*) from messages where {_OF_TEAMS}"
    f" and {inbox_items.UNANSWERED} group by team_id"
)
_UNREAD = (
    f"select team_id, count(*) from messages where {_OF_TEAMS} and recipient = :person"
    " and seen_at is null group by team_id"
)
_MEMBERS = (
    f"select team_id, id from agents where {_OF_TEAMS} and retired_at is null"
    " order by case role when 'coordinator' then 0 else 1 end, id"
)


@value
class TeamCounts:
    members: tuple[AgentId, ...] = ()
    """Coordinator first, then in order of hiring."""
    working: int = 0
    """Work nodes that run now."""
    waits_for_person: bool = False
    """Whether work of the team waits for a person's answer or approval."""
    open_questions: int = 0
    """Questions and requests in the viewer's inbox that they have not answered."""
    unread: int = 0
    """Messages to the viewer that they have not read."""
    usd: float = 0.0
    head: int = 0
    """The number of the newest event."""


def read(tx: Tx, first: TeamId, last: TeamId, viewer: PersonId) -> dict[TeamId, TeamCounts]:
    """Return the counts of the teams whose ids lie between two ids, both included."""
    of = {"first": first, "last": last}
    members: dict[TeamId, list[AgentId]] = defaultdict(list)
    for team, agent in tx.all(_MEMBERS, **of):
        members[team].append(agent)
    working = {row[0]: int(row[1]) for row in tx.all(_WORKING, **of)}
    waiting = {row[0] for row in tx.all(_WAITING_FOR_PERSON, **of)}
    questions = {
        row[0]: int(row[1])
        for row in tx.all(_QUESTIONS, person=viewer, now=to_micros(tx.now), **of)
    }
    unread = {row[0]: int(row[1]) for row in tx.all(_UNREAD, person=viewer, **of)}
    spent = spend.usd_by_team(tx, (first, last))
    return {
        team: TeamCounts(
            members=tuple(members[team]),
            working=working.get(team, 0),
            waits_for_person=team in waiting,
            open_questions=questions.get(team, 0),
            unread=unread.get(team, 0),
            usd=spent.get(team, 0.0),
            head=head,
        )
        for team, head in events.heads_of(tx, first, last).items()
    }
