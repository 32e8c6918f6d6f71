"""Deletion: delete a team for good. It is gone for everybody at once; its data is removed after.

`begin` records the deletion and stops the team. Then `runtime.team_removal` removes the files,
removes the rows with `drop_rows`, and last the record with `finish`. A crash in between leaves the
record, and every step can be repeated, so the next start goes on.
"""

from agiraph.domain.deletions import Deletion
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.events.team import TeamDeleted
from agiraph.domain.ids import PersonId, TeamId
from agiraph.domain.plurals import counted
from agiraph.services import access
from agiraph.services.lifecycle import daily_limit, emergency
from agiraph.store import daily_limits, deletions, nodes, spend
from agiraph.store.daily_limits import DAILY_LIMITS
from agiraph.store.deletions import DELETIONS
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx


def begin(
    tx: Tx, team_id: TeamId, *, name: str, stop: bool, who: str, person_id: PersonId
) -> Deletion:
    """Delete a team: end its work, hide it, and record that its data is to be removed.

    `name` must be the team's name, as the person typed it. A team with open work is refused unless
    `stop`. The audit's entry commits with it: it is all that stays. `who` is the caller's token.
    """
    team = TEAMS.get(tx, team_id, lock=True)
    if DELETIONS.find(tx, team_id) is not None:
        raise NotFound("team", team_id, known="It was deleted.")
    if name.strip() != team.name.strip():
        raise Refused(
            f"The name {name.strip()!r} is not that of the team, {team.name!r}. Nothing was "
            "deleted; send exactly the team's name to delete it for good."
        )
    work = sum(len(nodes.still_open(tx, team_id, lane)) for lane in emergency.LANES)
    if work and not stop:
        what = counted(work, "task or reply", "tasks and replies")
        raise Conflict(
            f"Team {team.name!r} is working on {what}. Stop it first, or send `stop` with the "
            "deletion to end its work now."
        )
    emergency.halt(tx, team_id)
    TEAMS.update(tx, team_id, status="archived")
    tx.emit(team_id, TeamDeleted(name=team.name))
    access.record_action(
        tx,
        who=who,
        person_id=person_id,
        method="DELETE",
        path=f"/api/teams/{team_id} ({team.name!r}, for good)",
        status=202,
    )
    deletion = Deletion(team_id=team_id, name=team.name, person_id=person_id, created_at=tx.now)
    return DELETIONS.insert(tx, deletion)


def pending(tx: Tx) -> list[Deletion]:
    """Return the teams that are still being removed."""
    return deletions.every(tx)


def is_at_work(tx: Tx, team_id: TeamId) -> bool:
    """Whether a live process still runs a node of the team: then nothing may be removed yet."""
    return deletions.is_at_work(tx, team_id)


def threads(tx: Tx, team_id: TeamId) -> list[tuple[str, int]]:
    """Return the id and the number of each thread of the team."""
    return deletions.threads(tx, team_id)


def calls(tx: Tx, number: int, *, after: int = 0) -> list[tuple[int, list[str]]]:
    """Return the next turns of a thread that made tool calls, each with the ids of its calls: they
    name the folders that hold the output of commands."""
    return deletions.calls(tx, number, after=after)


def drop_rows(tx: Tx, team_id: TeamId) -> bool:
    """Remove some of the team's rows; return False once all are removed."""
    if TEAMS.find(tx, team_id, lock=True) is None:
        return False
    if deletions.drop_batch(tx, team_id):
        return True
    day = spend.day_of(tx.now)
    if spent := spend.usd_of_team(tx, team_id, day=day):
        # Else a person could spend the daily limit again by deleting what spent it.
        row = daily_limits.lock(tx, day)
        DAILY_LIMITS.update(tx, day, deleted_usd=row.deleted_usd + spent)
    daily_limit.withdraw_requests(tx, team_id)
    deletions.drop_team(tx, team_id)
    return False


def finish(tx: Tx, team_id: TeamId) -> None:
    """Remove the record of a deletion: rows and files of the team are removed."""
    deletions.drop(tx, team_id)
