"""Grants, as rows: what persons have allowed for longer than one call."""

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.grants import Grant, GrantKind
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx

GRANTS = Table("grants", Grant)
_OF_TEAM = "(team_id = :team_id or team_id is null)"


def of_team(tx: Tx, team_id: TeamId) -> list[Grant]:
    """Return the grants of a team and of the whole home that are not revoked, oldest first."""
    return GRANTS.select(tx, f"{_OF_TEAM} and revoked_at is null order by id", team_id=team_id)


def listed(tx: Tx, team_id: TeamId) -> list[Grant]:
    """Return all grants of a team with those of the whole home; revoked ones too, newest first."""
    return GRANTS.select(tx, f"{_OF_TEAM} order by id desc", team_id=team_id)


def find(tx: Tx, team_id: TeamId, kind: GrantKind, target: str) -> Grant | None:
    """Return a grant in force that allows this target; a grant for one team before one for all."""
    fitting = [g for g in of_team(tx, team_id) if g.allows(kind, target, now=tx.now)]
    return min(fitting, key=lambda g: (g.team_id is None, g.id), default=None)


def in_force(tx: Tx, team_id: TeamId) -> list[Grant]:
    """Return the grants that may allow a call of this team now.

    Those that no use ends come first, and of them those for the team alone.
    """
    fitting = [g for g in of_team(tx, team_id) if g.is_in_force(tx.now)]
    return sorted(fitting, key=lambda g: (g.uses_left is not None, g.team_id is None, g.id))


def use(tx: Tx, grant: Grant) -> bool:
    """Count a call that the grant allows; return False if another call has used it up."""
    sql = (
        "update grants set used = used + 1, uses_left = uses_left - 1, used_at = :now"
        " where id = :id and revoked_at is null and (uses_left is null or uses_left > 0)"
    )
    return tx.run(sql, id=grant.id, now=to_micros(tx.now)) == 1


def revoke(tx: Tx, grant_id: str) -> bool:
    """End a grant; return False if it has ended before or does not exist."""
    sql = "update grants set revoked_at = :now where id = :id and revoked_at is null"
    return tx.run(sql, id=grant_id, now=to_micros(tx.now)) == 1
