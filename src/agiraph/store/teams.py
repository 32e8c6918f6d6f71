"""Teams and agents, as rows."""

from datetime import datetime

from agiraph.domain.agents import Agent, Team
from agiraph.domain.errors import NotFound
from agiraph.domain.ids import AgentId, TeamId
from agiraph.store.rows import Table, to_micros
from agiraph.store.tx import Tx

TEAMS = Table("teams", Team)
AGENTS = Table("agents", Agent)


def members(tx: Tx, team_id: TeamId) -> list[Agent]:
    """The agents of a team, coordinator first, then as they were hired."""
    order = "case role when 'coordinator' then 0 else 1 end, id"
    where = f"team_id = :team_id and retired_at is null order by {order}"
    return AGENTS.select(tx, where, team_id=team_id)


def everyone(tx: Tx, team_id: TeamId) -> list[Agent]:
    """The same, and those who have left."""
    return AGENTS.select(tx, "team_id = :team_id order by id", team_id=team_id)


def retired(tx: Tx, team_id: TeamId) -> list[Agent]:
    """Return the agents that have left the team, in the order they were hired."""
    where = "team_id = :team_id and retired_at is not null order by id"
    return AGENTS.select(tx, where, team_id=team_id)


def find_agent(tx: Tx, team_id: TeamId, name_or_id: str) -> Agent | None:
    """Return the agent with this name (any case) or id, whether it has left the team or not."""
    where = "team_id = :team and (id = :who or lower(name) = lower(:who))"
    found = AGENTS.select(tx, where, team=team_id, who=name_or_id.strip())
    return found[0] if found else None


def count(tx: Tx, team_id: TeamId) -> int:
    """How many are on a team now."""
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


def names(tx: Tx, team_id: TeamId) -> set[str]:
    """Every name that was ever given on this team, in lower case."""
    rows = tx.all("select name from agents where team_id = :team_id", team_id=team_id)
    return {row[0].lower() for row in rows}


def by_name(tx: Tx, team_id: TeamId, name: str) -> Agent:
    """The member of that name (any case), that id, or that role."""
    everyone = members(tx, team_id)
    wanted = name.strip().lower()
    for key in ("name", "id", "role"):
        for agent in everyone:
            if getattr(agent, key).lower() == wanted:
                return agent
    known = ", ".join(a.name for a in everyone)
    raise NotFound("teammate", name, known=f"On this team: {known}; and 'human'.")


def find(tx: Tx, name_or_id: str) -> Team:
    """The team of that id, or the newest of that name."""
    where = "id = :name or name = :name order by created_at desc limit 1"
    found = TEAMS.select(tx, where, name=name_or_id)
    if not found:
        raise NotFound("team", name_or_id, known="`agiraph teams` lists them.")
    return found[0]


def every(tx: Tx, *, after: int = 0, limit: int = 100) -> list[Team]:
    where = "created_at > :after order by created_at limit :limit"
    return TEAMS.select(tx, where, after=after, limit=limit)


def page(tx: Tx, *, after: str = "", limit: int = 100) -> list[Team]:
    """Teams in the order they were founded, after the one of that id."""
    return TEAMS.select(tx, "id > :after order by id limit :limit", after=after, limit=limit)


def lock(tx: Tx, agent_id: AgentId) -> Agent:
    """Reservation the agent's row: who hands it work, mail or an end waits for the other."""
    return AGENTS.get(tx, agent_id, lock=True)
