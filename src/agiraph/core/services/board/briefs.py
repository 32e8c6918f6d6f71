"""Briefs: the text of a task that is given away, and which tasks are not given away.

A worker sees nothing but its task. The parts have names, so that a model that delegates does not
forget one. Models also give the whole brief as one string, a list or an object; each is read.

Refused is the giver's own task, one that was given before, and handing work on and on, or on after
failures. A model that words its task anew at each level is not seen by its words. So handing on is
bounded by the tree of nodes: by its levels, and by how many tasks in it have failed since one
succeeded.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.text.json_text import repaired
from agiraph.core.domain.text.passages import words
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Effort, NodeStatus, WorkNode
from agiraph.core.services.board.texts import title_of
from agiraph.core.store import messages, nodes
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

_OBJECTIVE = ("objective", "task", "goal")
"""Names under which models give what is to be achieved."""
EFFORT_WORDS: Mapping[Effort, str] = {
    "none": "a quick answer, without research",
    "low": "a quick look, about 3 to 10 calls",
    "medium": "about 10 to 20 calls",
    "high": "thorough, and checked twice",
    "max": "as thorough as the limits allow",
}
"""What an effort asks of the worker, beside how much its model thinks."""

IN_COMMANDS = "In bash, nodes/<id>/published is ../../<id>/published. Copy what you want to change."
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


@value
class Brief:
    """What somebody must know to do a task for somebody else."""

    objective: str
    """What to achieve, and what it is for."""
    context: str = ""
    """What is known already."""
    inputs: tuple[str, ...] = ()
    """Files and addresses to read."""
    output: str = ""
    """What to return, and in which form."""
    boundaries: str = ""
    """What to leave alone, and what others do."""
    effort: Effort | None = None

    @property
    def text(self) -> str:
        """The brief as its worker reads it; the objective alone if nothing else is given."""
        parts = [
            self.objective.strip(),
            _part("Context", self.context),
            _part("Inputs", "\n".join(self._inputs)),
            _part("Output", self.output),
            _part("Boundaries", self.boundaries),
            _part("Effort", f"{EFFORT_WORDS[self.effort]}." if self.effort else ""),
        ]
        return "\n\n".join(part for part in parts if part)

    @property
    def _inputs(self) -> list[str]:
        lines = [f"- {one_line(each)}" for each in self.inputs]
        # Commands run in scratch/, from where the path of the file tools leads nowhere.
        published = any(each.strip().startswith("nodes/") for each in self.inputs)
        return [*lines, f"({IN_COMMANDS})"] if published else lines


def _part(name: str, text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return f"{name}:\n{text}" if text.startswith("- ") else f"{name}: {text}"


def read_task(given: Any) -> Any:
    """Return a task as text, if a model gave it as an object with the parts of a brief."""
    found = given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        found = repaired(given.strip())
    if not isinstance(found, dict):
        return given
    parts = cast(dict[str, Any], found)
    if not (objective := _objective(parts)):
        return given
    inputs = read_list(parts.get("inputs"))
    brief = Brief(
        objective=objective,
        context=_text(parts.get("context")),
        inputs=tuple(map(str, cast(list[Any], inputs))) if isinstance(inputs, list) else (),
        output=_text(parts.get("output")),
        boundaries=_text(parts.get("boundaries")),
    )
    known = {*_OBJECTIVE, "context", "inputs", "output", "boundaries"}
    more = [f"{name}: {_text(said)}" for name, said in parts.items() if name not in known and said]
    return "\n\n".join([brief.text, *more])


def read_text(given: Any) -> Any:
    """Return one part of a brief as text, if a model gave a list or an object."""
    return _text(given) if isinstance(given, (list, dict)) else given


def read_list(given: Any) -> Any:
    """Return the inputs as a list, if a model gave one string: one for each line."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("[") and isinstance(found := repaired(given.strip()), list):
        return cast(list[Any], found)
    return [line.strip().removeprefix("- ") for line in given.splitlines() if line.strip()]


def _objective(parts: Mapping[str, Any]) -> str:
    return next((_text(parts[name]) for name in _OBJECTIVE if parts.get(name)), "")


def _text(given: Any) -> str:
    match given:
        case None:
            return ""
        case str():
            return given
        case list():
            lines = cast(Sequence[Any], given)
            return "\n".join(f"- {_text(each)}" for each in lines)
        case _:
            return orjson.dumps(given, default=str).decode()


def check_repeats(
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
    repeated = (c for c in children if _was_given(c) and _is_same(task, c.task))
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


def _is_same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _is_other_part(title: str, other: str) -> bool:
    """Whether two tasks in the same words are about two things, which their titles name: "AMD:
    prices" and "Intel: prices"."""
    return bool(title.strip() and other.strip()) and not _is_same(title, other)


def _plain(text: str) -> tuple[str, ...] | str:
    return tuple(words(text)) or one_line(text).casefold()


def _is_own(task: str, own: str) -> bool:
    """Whether a task is the giver's own: the same words, or nearly the same if they are many."""
    if _is_same(task, own):
        return True
    given, mine = Counter(words(task)), Counter(words(own))
    longest = max(given.total(), mine.total())
    return longest >= SHORTEST_WORDS and (given & mine).total() >= NEARLY * longest
