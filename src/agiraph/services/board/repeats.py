"""Repeats: refuses to delegate the giver's own task, or a task that was given before; and to hand
work on and on, or on after failures.

A model that words its task anew at each level is not seen by its words. So handing on is bounded by
the tree of nodes: by its levels, and by how many tasks in it have failed since one succeeded.
"""

from collections import Counter
from datetime import datetime

from agiraph.domain.errors import Refused
from agiraph.domain.fence import one_line
from agiraph.domain.passages import words
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board.texts import title_of
from agiraph.store import messages, nodes
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

NEARLY = 0.9
"""The share of common words from which on a long task counts as the giver's own."""
SHORTEST_WORDS = 12
"""Shorter tasks count as the giver's own only if all words are the same."""

RELAYS_FROM, SPLITS_UNTIL = 2, 3
"""The level from which on a worker that has made nothing itself may not hand on a single task, and
the one from which on it may give away none at all. The goal is level 0."""
MOST_FAILURES = 6
"""Tasks of a goal that a loop, silence or a limit may end before one succeeds; then none is given
away."""


def check(
    tx: Tx,
    giver: WorkNode,
    task: str,
    *,
    title: str = "",
    goal: str = "",
    to_program: bool = False,
    objective: str = "",
) -> None:
    """Raise `Refused` for a task that must not be delegated; `goal` is the team's, if the giver
    works on it. A program cannot pass a task on, so it may be given the whole of the giver's.

    `objective` is the part of the task that says what to achieve. Its context may well repeat the
    giver's task.
    """
    wanted = objective or task
    if not to_program and any(_is_own(wanted, own) for own in (giver.task, goal) if own):
        raise Refused(
            "That is your task, in the words in which it was given to you. Do it yourself, or give "
            "away a part of it: say which part, what it is for, and what done means."
        )
    children = nodes.children(tx, giver.id)
    repeated = (c for c in children if _was_given(c) and _same(task, c.task))
    before = next((c for c in repeated if not _is_other_part(title, c.title)), None)
    if before is not None:
        raise Refused(
            f"You gave this task before, in the same words: {before.id} is {before.status} "
            f"({title_of(before)}). Use its result, or resume it with what should be different. If "
            "you want it done a second time, say in the task why."
        )


def check_relay(tx: Tx, giver: WorkNode, *, is_single: bool, has_made: bool) -> None:
    """Raise `Refused` if this work is only handed on: see `RELAYS_FROM`.

    `is_single`: the reply gives away this task alone. `has_made`: the giver has made something in
    its thread, and not only read and given away.
    """
    if has_made or giver.parent_id is None or giver.depth < RELAYS_FROM:
        return
    if giver.depth >= TEAMS.get(tx, giver.team_id).limits.depth:
        return  # `planning.create` refuses it, and says why
    if giver.depth < SPLITS_UNTIL:
        is_split = nodes.count_open_children(tx, giver.parent_id) > 1
        if is_split or not is_single:
            return
    raise Refused(
        "Not given away: those above you have only handed this on, and you have made nothing of it "
        "yet. Do it yourself, beginning with its first part; then you can give away other parts."
    )


def check_failures(tx: Tx, giver: WorkNode, *, since: datetime | None) -> None:
    """Raise `Refused` if too many tasks of the giver's goal have failed in a row. Those that ended
    before `since`, or before a person's newest message, do not count."""
    root = nodes.root(tx, giver)
    said = messages.from_people(tx, giver.team_id, limit=1)
    starts = filter(None, (since, root.created_at, *(m.created_at for m in said)))
    failed = nodes.failed_in_a_row(tx, root.id, since=max(starts))
    if failed >= MOST_FAILURES:
        raise Refused(
            f"Not given away: of this goal's tasks the last {failed} ended without success, and "
            "one more would probably end like them. Do the work yourself in small steps, submit "
            "what you have, or ask the human."
        )


def _was_given(child: WorkNode) -> bool:
    return not child.status.is_final or child.status is NodeStatus.COMPLETED


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _is_other_part(title: str, other: str) -> bool:
    """Whether two tasks in the same words are about two things, which their titles name: "AMD:
    prices" and "Intel: prices"."""
    return bool(title.strip() and other.strip()) and not _same(title, other)


def _plain(text: str) -> tuple[str, ...] | str:
    return tuple(words(text)) or one_line(text).casefold()


def _is_own(task: str, own: str) -> bool:
    """Whether a task is the giver's own: the same words, or nearly the same if they are many."""
    if _same(task, own):
        return True
    given, mine = Counter(words(task)), Counter(words(own))
    longest = max(given.total(), mine.total())
    return longest >= SHORTEST_WORDS and (given & mine).total() >= NEARLY * longest
