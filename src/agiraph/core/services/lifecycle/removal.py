"""Removal: delete a team for good, and remove the turns of threads that were closed long ago.

A team is gone for everybody at once; its data is removed after. `delete_team` records the deletion
and stops the team. Then `runtime.background.upkeep` removes the files, removes the rows with
`drop_rows`, and last the record with `finish_deletion`.

Of old threads, results, published files, messages, events, costs and what was learned stay.
`mark_old_threads` marks a thread, so that nothing can go on in it; then `runtime.retention` removes
files, and `drop_turns` the turns. A crash in between leaves record or mark, and every step can be
repeated, so the next start goes on.
"""

from datetime import datetime

from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.events.team import TeamDeleted
from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.domain.records.deletions import Deletion
from agiraph.core.domain.text.plurals import counted
from agiraph.core.services import access
from agiraph.core.services.lifecycle import overspending, teams
from agiraph.core.store import deletions, nodes, spend, threads
from agiraph.core.store.deletions import DELETIONS
from agiraph.core.store.spend import DAILY_LIMITS
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx


def delete_team(
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
    work = sum(len(nodes.still_open(tx, team_id, lane)) for lane in teams.LANES)
    if work and not stop:
        what = counted(work, "task or reply", "tasks and replies")
        raise Conflict(
            f"Team {team.name!r} is working on {what}. Stop it first, or send `stop` with the "
            "deletion to end its work now."
        )
    teams.halt(tx, team_id, by=person_id)
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


def pending_deletions(tx: Tx) -> list[Deletion]:
    """Return the teams that are still being removed."""
    return deletions.every(tx)


def is_at_work(tx: Tx, team_id: TeamId) -> bool:
    """Whether a live process still runs a node of the team: then nothing may be removed yet."""
    return deletions.is_at_work(tx, team_id)


def threads_of_team(tx: Tx, team_id: TeamId) -> list[tuple[str, int]]:
    """Return the id and the number of each thread of the team."""
    return deletions.threads(tx, team_id)


def calls_of_thread(tx: Tx, number: int, *, after: int = 0) -> list[tuple[int, list[str]]]:
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
        row = spend.lock(tx, day)
        DAILY_LIMITS.update(tx, day, deleted_usd=row.deleted_usd + spent)
    overspending.withdraw_requests(tx, team_id)
    deletions.drop_team(tx, team_id)
    return False


def finish_deletion(tx: Tx, team_id: TeamId) -> None:
    """Remove the record of a deletion: rows and files of the team are removed."""
    deletions.drop(tx, team_id)


def mark_old_threads(tx: Tx, before: datetime, *, limit: int) -> list[Thread]:
    """Mark threads that were closed before that moment, and return them."""
    marked: list[Thread] = []
    for found in threads.closed_before(tx, before, limit=limit):
        # The lock that `leases.reopen` takes: a thread goes on, or its turns are removed.
        thread = THREADS.get(tx, found.id, lock=True)
        if thread.closed_at is None or thread.closed_at >= before or thread.pruned_at is not None:
            continue
        # No reflection begins on a thread without turns.
        harvested_at = thread.harvested_at or tx.now
        THREADS.update(tx, thread.id, pruned_at=tx.now, harvested_at=harvested_at)
        marked.append(thread)
    return marked


def marked_threads(tx: Tx) -> list[Thread]:
    """Return the marked threads whose turns are still there."""
    return threads.partly_pruned(tx)


def all_calls(tx: Tx, thread: Thread) -> list[str]:
    """Return the ids of all tool calls in a thread: they name the folders of their output."""
    number = threads.number_of(tx, thread.id)
    ids: list[str] = []
    after = 0
    while page := deletions.calls(tx, number, after=after):
        ids += [call for _, made in page for call in made]
        after = page[-1][0]
    return ids


def drop_turns(tx: Tx, thread: Thread) -> None:
    """Remove the turns of a marked thread."""
    threads.drop_turns(tx, thread.id)
