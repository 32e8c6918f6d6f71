"""Documents: the rows follow what a person writes into the files SOUL.md and GOAL.md of a team."""

import re

from agiraph.domain.agents import ARCHIVED, Team
from agiraph.domain.errors import Refused
from agiraph.domain.events.team import TeamChanged
from agiraph.domain.ids import TeamId
from agiraph.domain.labels import CLEAN
from agiraph.services.board import team_hosts
from agiraph.services.lifecycle.teams import check_goal
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

_HEADING = re.compile(r"\A\s*#\s*(soul|goal)\s*$", re.IGNORECASE | re.MULTILINE)
ROWS = {"SOUL.md": "soul", "GOAL.md": "goal"}
"""The columns that follow a file."""
SOUL_LIMIT = 100_000
"""Characters, because it goes into every prompt."""


def follow(tx: Tx, team_id: TeamId, path: str, text: str) -> Team:
    """Set the column that follows a file to its new text, without the heading; return the team. A
    goal changes in words only: open work goes on, and no new run starts."""
    column = ROWS[path]
    team = TEAMS.get(tx, team_id, lock=True)
    if team.status == "archived":
        raise Refused(ARCHIVED.format(team.name))
    words = _HEADING.sub("", text, count=1).strip()
    if column == "goal":
        check_goal(words)
    elif len(words) > SOUL_LIMIT:
        raise Refused(
            f"The soul is longer than {SOUL_LIMIT:,} characters; put details in a note in memory/."
        )
    TEAMS.update(tx, team_id, **{column: words})
    if column == "goal":
        team_hosts.allow(tx, team_id, team.owner_id, words, CLEAN, lasts=True)
    tx.emit(team_id, TeamChanged(changed=[column], name=team.name, mode=team.mode))
    return TEAMS.get(tx, team_id)
