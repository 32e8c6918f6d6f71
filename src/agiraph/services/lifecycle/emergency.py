"""Emergency: end all work of a team, or stop the work of all teams until a person resumes it."""

from dataclasses import asdict
from datetime import datetime

import orjson
from pydantic import TypeAdapter

from agiraph.domain.events.team import WorkResumed, WorkStopped
from agiraph.domain.ids import TeamId
from agiraph.domain.value import value
from agiraph.domain.work import Lane, Queue, WorkNode
from agiraph.services.board import texts
from agiraph.services.lifecycle import endings, teams
from agiraph.store import nodes, work_stop
from agiraph.store.teams import AGENTS, TEAMS, at_work, kept
from agiraph.store.tx import Tx

LANES: tuple[Lane, ...] = ("work", "reply", "reflection")
MOST_LISTED = 100
"""Interrupted tasks that are listed by name."""


@value
class InterruptedTask:
    """A task that was running when all work was stopped."""

    team_id: str
    team: str
    agent_id: str
    agent: str
    node_id: str
    title: str
    lane: Lane


@value
class WorkStop:
    """An emergency stop that is in force."""

    at: datetime
    by: str
    """The name of the token that stopped the work."""
    running: int
    """Tasks that were interrupted."""
    queued: int
    """Tasks that were ready to run."""
    interrupted: tuple[InterruptedTask, ...] = ()
    told: tuple[str, ...] = ()
    """The teams whose history has the stop, which must get its end too."""


_STORED = TypeAdapter(WorkStop)


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


def stop_all(tx: Tx, *, by: str) -> WorkStop:
    """Interrupt every run of every team, and let none begin until `resume_all`.

    Nothing is cancelled: each runner ends its commands and puts its node back into the queue. The
    stop is a row, so it holds for all processes and after a restart. While work is stopped, this
    returns the stop that is in force.
    """
    if (before := found_stop(tx)) is not None:
        return before
    running = nodes.all_running(tx)
    stop = WorkStop(
        at=tx.now,
        by=by,
        running=len(running),
        queued=nodes.count_assigned(tx),
        interrupted=tuple(_named(tx, node) for node in running[:MOST_LISTED]),
        told=tuple(at_work(tx)),
    )
    if not work_stop.begin(tx, orjson.dumps(asdict(stop)).decode()):
        # Another process stopped the work in the same moment.
        other = found_stop(tx)
        assert other is not None
        return other
    for node in running:
        assert node.assignee_id is not None
        tx.cancel(node.assignee_id, node.lane)
    for team_id in stop.told:
        tx.emit(TeamId(team_id), WorkStopped(by=by))
    return stop


def found_stop(tx: Tx) -> WorkStop | None:
    """Return the emergency stop that is in force; None if work may run."""
    noted = work_stop.find(tx)
    return None if noted is None else _STORED.validate_json(noted)


def resume_all(tx: Tx) -> int:
    """End the emergency stop and wake every queue with work; return how many queues these are."""
    stop = found_stop(tx)
    if stop is None or not work_stop.end(tx):
        return 0
    queues: list[Queue] = nodes.queues(tx)
    for queue in queues:
        tx.wake(*queue)
    # Also teams that were stopped or archived meanwhile: their history has the beginning.
    for team_id in sorted(kept(tx).intersection(stop.told).union(at_work(tx))):
        tx.emit(team_id, WorkResumed())
    return len(queues)


def _named(tx: Tx, node: WorkNode) -> InterruptedTask:
    assert node.assignee_id is not None
    return InterruptedTask(
        team_id=node.team_id,
        team=TEAMS.get(tx, node.team_id).name,
        agent_id=node.assignee_id,
        agent=AGENTS.get(tx, node.assignee_id).name,
        node_id=node.id,
        title=texts.subject_of(node),
        lane=node.lane,
    )
