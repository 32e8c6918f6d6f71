"""Emergency: everything of a team ends now: its work, its answers, its looking back, its waking."""

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane
from agiraph.services.lifecycle import endings, teams
from agiraph.store import nodes
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

LANES: tuple[Lane, ...] = ("work", "reply", "reflection")


def halt(tx: Tx, team_id: TeamId) -> int:
    """Stop a team and cancel whatever is open in it, asked for or not; how much that was.

    What runs is told at once, and its commands are ended with all they started.
    """
    is_on = TEAMS.get(tx, team_id, lock=True).status in ("active", "paused")
    found = [node for lane in LANES for node in nodes.still_open(tx, team_id, lane)]
    if is_on:
        teams.stop(tx, team_id)
    for node in found:
        if nodes.is_open(tx, node.id):
            endings.cancel(tx, node.id)
    return len(found)
