"""Reading budget: what is left of a research job's budget, and the budget of each reader."""

from dataclasses import replace
from typing import NamedTuple

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import budgets, jobs
from agiraph.core.store import nodes, spend, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import ResearchJob
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.verbs import starting
from agiraph.features.research.verbs.starting import FETCH, SEARCH

READING = 0.75
"""The share of a job's money, tokens and time that reading may use; the rest is for the report."""
LEAST_SECONDS = 20.0
"""A reader with less time than this is not started."""
LEAST_USD, LEAST_TOKENS = 0.002, 8_000
WRITING_TURNS = 6
"""The most turns of a part that asks its model one question, with retries and one repair."""


class Remaining(NamedTuple):
    """What is left of a job's budget for reading."""

    searches: int
    pages: int
    usd: float | None
    tokens: float | None
    seconds: float | None

    @property
    def shortage(self) -> StopReason | None:
        """Return which limit leaves too little for another reader; None if all leave enough."""
        if self.seconds is not None and self.seconds < LEAST_SECONDS:
            return StopReason.TIME_SPENT
        if self.usd is not None and self.usd < LEAST_USD:
            return StopReason.MONEY_SPENT
        if self.tokens is not None and self.tokens < LEAST_TOKENS:
            return StopReason.TOKENS_SPENT
        if self.searches <= 0 and self.pages <= 0:
            return StopReason.CALLS_SPENT
        return None


def readers(tx: Tx, job_id: NodeId) -> list[WorkNode]:
    """Return the readers of a job, in the order in which they were started."""
    return [part for part in parts(tx, job_id) if part_of(part) == "reader"]


def parts(tx: Tx, job_id: NodeId) -> list[WorkNode]:
    found = [child for child in nodes.children(tx, job_id) if child.kind.is_bounded_above]
    return sorted(found, key=lambda part: part.id)


def engines(tx: Tx, job: ResearchJob) -> str:
    """Return the names of the search engines that a job has used, which a key that is entered or
    removed changes; before its first search the one that it began with."""
    rows = (row for reader in readers(tx, job.id) for row in spend.of_node(tx, reader.id))
    names = {row.model.removeprefix("search:") for row in rows if row.purpose == spend.SEARCH}
    return ", ".join(sorted(names)) or job.engine


def unfinished(tx: Tx, job_id: NodeId) -> dict[NodeId, StopReason | None]:
    """Return why readers of a job ended before they were done; None: a reader wanted more searches
    or pages than it had."""
    found: dict[NodeId, StopReason | None] = {}
    for reader in readers(tx, job_id):
        if reader.status is not NodeStatus.COMPLETED and reader.stop_reason is not None:
            found[reader.id] = reader.stop_reason
        elif _wanted_more(tx, reader):
            found[reader.id] = None
    return found


def _wanted_more(tx: Tx, reader: WorkNode) -> bool:
    """Whether a call of a reader was refused because its calls of that tool were used up."""
    if reader.thread_id is None:
        return False
    turns = [turn for turn in threads.turns(tx, reader.thread_id) if turn.node_id == reader.id]
    failed = {turn.ref for turn in turns if turn.role == "tool" and turn.failed}
    left = dict(reader.budget.calls)
    for call in (call for turn in turns for call in turn.calls if call.name in left):
        if call.id in failed and left[call.name] <= 0:
            return True
        left[call.name] -= call.id not in failed
    return False


def left(tx: Tx, node: WorkNode) -> Remaining:
    """Return what is left of a job's budget for readers that are not started yet.

    The unused budget of a running reader counts as used.
    """
    budget, used = node.budget, spend.total(tx, node.id)
    searches, pages = budget.calls.get(SEARCH, 0), budget.calls.get(FETCH, 0)
    usd = None if budget.usd is None else budget.usd * READING - used.usd
    tokens = None if budget.tokens is None else budget.tokens * READING - used.tokens
    for reader in readers(tx, node.id):
        calls, mine = reader.budget.calls, jobs.used_calls(tx, reader)
        is_open = not reader.status.is_final
        searches -= calls[SEARCH] if is_open else mine[SEARCH]
        pages -= calls[FETCH] if is_open else mine[FETCH]
        if is_open:
            spent = spend.total(tx, reader.id)
            usd = None if usd is None else usd - max((reader.budget.usd or 0.0) - spent.usd, 0.0)
            reserved = max((reader.budget.tokens or 0) - spent.tokens, 0)
            tokens = None if tokens is None else tokens - reserved
    seconds = budgets.seconds_left(tx, node)
    if seconds is not None and budget.seconds is not None:
        seconds -= (1 - READING) * budget.seconds
    return Remaining(searches, pages, usd, tokens, seconds)


def for_reader(left: Remaining, job: ResearchJob, *, waiting: int, rounds: int) -> Budget:
    """Return the budget of the next of `waiting` readers. A share is kept for each later round."""
    among = max(waiting + rounds, 1)

    def count(amount: int) -> int:
        return min(max(amount // among, 1), max(amount, 0))

    return Budget(
        turns=job.limits.turns,
        usd=None if left.usd is None else left.usd / among,
        tokens=None if left.tokens is None else int(left.tokens / among),
        # Readers work at the same time, so that time is not divided.
        seconds=left.seconds,
        calls={SEARCH: count(left.searches), FETCH: count(left.pages)},
        given={"turns": job.limits.turns},
    )


def for_writing() -> Budget:
    """Return the budget of a part that writes or judges: what the job has left."""
    return Budget(turns=WRITING_TURNS, given={"turns": WRITING_TURNS})


def count_time(tx: Tx, part: WorkNode) -> None:
    """Add the time of a part that has ended to its job, which waited for it.

    Time in which several parts worked is counted once: at most the time since the job began to
    wait. Time in which the process did not run is not counted.
    """
    assert part.parent_id is not None
    job = NODES.get(tx, part.parent_id, lock=True)
    since = min((wait.created_at for wait in waits.of_node(tx, job.id)), default=None)
    if since is None:
        return
    worked = part.worked_seconds
    if part.claimed_at is not None:
        worked += (tx.now - part.claimed_at).total_seconds()
    waited = (tx.now - since).total_seconds()
    NODES.update(tx, job.id, worked_seconds=job.worked_seconds + max(min(worked, waited), 0.0))


def more_calls(budget: Budget, job: ResearchJob) -> Budget:
    """Return the budget of a job that starts again after its end: it gets its searches and pages
    once more."""
    again = starting.of_depth(job.limits, job.searches, job.pages).calls
    calls = {name: budget.calls.get(name, 0) + amount for name, amount in again.items()}
    return replace(budget, calls=calls)
