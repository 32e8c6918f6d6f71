"""Emergency: end everything of a team now: work, replies, reflections and triggers."""

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Lane
from agiraph.services.lifecycle import endings, teams
from agiraph.store import nodes
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

LANES: tuple[Lane, ...] = ("work", "reply", "reflection")


def halt(tx: Tx, team_id: TeamId) -> int:
    """Stop a team and cancel all its open nodes in every lane; return how many there were.

    Runners are notified at once. They kill their commands with all processes these started.
    """
    is_on = TEAMS.get(tx, team_id, lock=True).status in ("active", "paused")
    found = [node for lane in LANES for node in nodes.still_open(tx, team_id, lane)]
    if is_on:
        teams.stop(tx, team_id)
    for node in found:
        # `stop`, or the cancel of a node above, may have ended it.
        if nodes.is_open(tx, node.id):
            endings.cancel(tx, node.id)
    return len(found)
