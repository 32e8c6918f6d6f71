"""Repeats: refuses to delegate the giver's own task, or a task that was given before."""

from collections import Counter

from agiraph.domain.errors import Refused
from agiraph.domain.fence import one_line
from agiraph.domain.passages import words
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board.texts import title_of
from agiraph.store import nodes
from agiraph.store.tx import Tx

NEARLY = 0.9
"""The share of common words from which on a long task counts as the giver's own."""
SHORTEST_WORDS = 12
"""Shorter tasks count as the giver's own only if all words are the same."""


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
