"""Teams: the rows of teams and agents."""

from datetime import datetime

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import AgentId, PersonId, TeamId, ThreadId
from agiraph.core.domain.persons import OWNER, Person
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx

TEAMS = Table("teams", Team)
AGENTS = Table("agents", Agent)
KEPT = "id not in (select team_id from deletions)"
"""Leaves out teams that were deleted and whose rows are still being removed."""


def members(tx: Tx, team_id: TeamId) -> list[Agent]:
    """Return the agents of a team, coordinator first, then in order of hiring."""
    order = "case role when 'coordinator' then 0 else 1 end, id"
    where = f"team_id = :team_id and retired_at is null order by {order}"
    return AGENTS.select(tx, where, team_id=team_id)


def coordinator(tx: Tx, team_id: TeamId) -> Agent:
    """Return the member that plans the team's work and gets reports that have no other recipient.

    That is the member with the role `coordinator`. A team without one, such as a restored or
    hand-made team, is led by the member that was hired first. `NotFound` if the team has no member.
    """
    found = members(tx, team_id)
    if not found:
        raise NotFound("coordinator", team_id, known="The team has no members.")
    return found[0]


def retired(tx: Tx, team_id: TeamId) -> list[Agent]:
    """Return the agents that have left a team, in the order in which they were hired."""
    where = "team_id = :team_id and retired_at is not null order by id"
    return AGENTS.select(tx, where, team_id=team_id)


def everyone(tx: Tx, team_id: TeamId) -> list[Agent]:
    """Return all agents that are or were on a team, in the order in which they were hired."""
    return AGENTS.select(tx, "team_id = :team_id order by id", team_id=team_id)


def find_agent(tx: Tx, team_id: TeamId, name_or_id: str) -> Agent | None:
    """Return the agent with this name (any case) or id, whether it has left the team or not."""
    where = "team_id = :team and (id = :who or lower(name) = lower(:who))"
    found = AGENTS.select(tx, where, team=team_id, who=name_or_id.strip())
    return found[0] if found else None


def count(tx: Tx, team_id: TeamId) -> int:
    """Return how many agents are on a team now."""
    row = tx.one(
        "select count(*) from agents where team_id = :team_id and retired_at is null",
        team_id=team_id,
    )
    return 0 if row is None else int(row[0])


def hired_since(tx: Tx, team_id: TeamId, moment: datetime) -> int:
    row = tx.one(
        "select count(*) from agents where team_id = :team_id and created_at > :moment",
        team_id=team_id,
        moment=to_micros(moment),
    )
    return 0 if row is None else int(row[0])


def names(tx: Tx, team_id: TeamId, *, begin_with: str) -> set[str]:
    """Return the names with this beginning of all agents that are or were on this team, in lower
    case.

    A new agent may have none of them: a name stays with the agent that had it.
    """
    # An underscore of the name stands for any letter in `like`: more names are found, never fewer.
    sql = "select name from agents where team_id = :team_id and lower(name) like lower(:beginning)"
    rows = tx.all(sql, team_id=team_id, beginning=f"{begin_with}%")
    return {row[0].lower() for row in rows}


def hired_from(tx: Tx, team_id: TeamId, thread_id: ThreadId, *, role: str) -> list[Agent]:
    """Return the agents with a role that were hired from a thread, also those that have left."""
    where = "team_id = :team and parent_thread_id = :thread and role = :role order by id"
    return AGENTS.select(tx, where, team=team_id, thread=thread_id, role=role)


def by_name(tx: Tx, team_id: TeamId, name: str, *, with_retired: bool = False) -> Agent:
    """Return the member with this name (in any case), else with this id, else with this role.

    `with_retired` also finds an agent that has left the team, by its name or id. `NotFound` lists
    the members if there is no such agent.
    """
    present = members(tx, team_id)
    named = everyone(tx, team_id) if with_retired else present
    wanted = name.strip().lower()
    for key, among in (("name", named), ("id", named), ("role", present)):
        for agent in among:
            if getattr(agent, key).lower() == wanted:
                return agent
    known = ", ".join(a.name for a in present)
    raise NotFound("teammate", name, known=f"On this team: {known}; and 'human'.")


def find(tx: Tx, name_or_id: str) -> Team:
    """Return the team with this id, or the newest with this name; raise `NotFound`."""
    where = f"(id = :name or name = :name) and {KEPT} order by created_at desc limit 1"
    found = TEAMS.select(tx, where, name=name_or_id)
    if not found:
        raise NotFound("team", name_or_id, known="`agiraph teams` lists them.")
    return found[0]


def every(tx: Tx, *, after: int = 0, limit: int = 100) -> list[Team]:
    where = f"created_at > :after and {KEPT} order by created_at limit :limit"
    return TEAMS.select(tx, where, after=after, limit=limit)


def page(tx: Tx, *, after: str = "", limit: int = 100) -> list[Team]:
    """Return a page of teams after an id, oldest first."""
    where = f"id > :after and {KEPT} order by id limit :limit"
    return TEAMS.select(tx, where, after=after, limit=limit)


def at_work(tx: Tx) -> list[TeamId]:
    """Return the ids of the teams that are active or paused."""
    rows = tx.all(f"select id from teams where status in ('active', 'paused') and {KEPT}")
    return [row[0] for row in rows]


def kept(tx: Tx) -> set[TeamId]:
    """Return the ids of all teams that were not deleted."""
    return {row[0] for row in tx.all(f"select id from teams where {KEPT}")}


def newest(tx: Tx, limit: int) -> list[TeamId]:
    """Return the ids of the newest teams, newest first."""
    sql = f"select id from teams where {KEPT} order by id desc limit :limit"
    return [TeamId(found) for (found,) in tx.all(sql, limit=limit)]


def lock(tx: Tx, agent_id: AgentId) -> Agent:
    """Lock and return the agent's row. Transactions that give one agent work, mail or a result take
    this lock and so run one after another. It comes before the lock on a trigger's row."""
    return AGENTS.get(tx, agent_id, lock=True)


PERSONS = Table("persons", Person)


def owner(tx: Tx) -> Person:
    """Return the owner of this installation, whose row every database has."""
    return PERSONS.get(tx, OWNER)


def zone_of(tx: Tx, person_id: PersonId) -> str:
    """Return the time zone of a person: that of the times they name and are told."""
    return PERSONS.get(tx, person_id).zone or "UTC"


def zone_of_team(tx: Tx, team_id: TeamId) -> str:
    """Return the time zone of the person whom a team belongs to."""
    return zone_of(tx, owner_of(tx, team_id))


def owner_of(tx: Tx, team_id: TeamId) -> PersonId:
    """Return the person whom a team belongs to."""
    return TEAMS.get(tx, team_id).owner_id
