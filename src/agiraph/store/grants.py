"""Grants, as rows: what persons have allowed for longer than one call."""

from agiraph.domain.grants import Grant, GrantKind
from agiraph.domain.ids import TeamId
from agiraph.store.rows import Table
from agiraph.store.tx import Tx

GRANTS = Table("grants", Grant)


def of_team(tx: Tx, team_id: TeamId) -> list[Grant]:
    """Return the grants of a team and of the whole home that are not revoked, oldest first."""
    where = "(team_id = :team_id or team_id is null) and revoked_at is null order by id"
    return GRANTS.select(tx, where, team_id=team_id)


def listed(tx: Tx, team_id: TeamId | None = None) -> list[Grant]:
    """Return all grants of a team, or of all teams, revoked ones too, newest first."""
    if team_id is None:
        return GRANTS.select(tx, "1 = 1 order by id desc")
    return GRANTS.select(tx, "team_id = :team_id order by id desc", team_id=team_id)


def find(tx: Tx, team_id: TeamId, kind: GrantKind, target: str) -> Grant | None:
    """Return a grant in force that allows this target; a grant for one team before one for all."""
    fitting = [g for g in of_team(tx, team_id) if g.allows(kind, target, now=tx.now)]
    return min(fitting, key=lambda g: (g.team_id is None, g.id), default=None)


def use(tx: Tx, grant: Grant) -> bool:
    """Count a call that the grant allows; return False if another call has used it up."""
    sql = (
        "update grants set used = used + 1, uses_left = uses_left - 1 where id = :id"
        " and revoked_at is null and (uses_left is null or uses_left > 0)"
    )
    return tx.run(sql, id=grant.id) == 1
