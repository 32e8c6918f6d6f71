"""Texts: the wording of tasks and results for agents, and the lengths that texts may have."""

from collections.abc import Sequence
from typing import Protocol

from agiraph.core.domain.agents import name_from_goal
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.doubts import Doubt, sentence
from agiraph.core.domain.text import fence
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import changed
from agiraph.core.domain.work import Budget, LineKind, NodeStatus, StopReason, WorkNode

LONGEST = 20_000
"""Characters of a node's result that go into another thread; its files hold the rest."""
NAMES = 2000
"""Characters of the list of a node's published files."""
TITLE = 200
"""Characters of a title, wherever one is shown."""
DOUBTS = 4000
"""Characters of what could not be confirmed of a result."""
MOST_DOUBTS = 100
"""Points of a result that are stored; of more, the last one gives the number."""
REASON = 400
"""Characters of why a node waits, in a list of several."""
LISTED = 20
"""Nodes or files that one sentence names; of more, it gives the number."""
MESSAGE = 100_000
"""Characters of one message. A longer one from a model or a person is refused; the runtime's own
reports are cut instead, because nobody could write them again."""
RESULT_SHOWN = 1200
"""Characters of a report or result that a conversation shows; a tool reads all of it."""
GOAL_TITLE = "Get to work on the goal"
"""The title of the node of a team's goal."""
REFLECTION_TITLE = "Reflection"
_OLD_REFLECTION_TITLE = "Look back"
"""How nodes of a reflection were called before; such rows are still in databases."""
NO_WORDS = "(It ended without a word.)"


def assignment(
    node: WorkNode, *, giver: str, thread: str, refs: Sequence[str] | None = None
) -> str:
    """Return a node's task as text for its assignee; the giver's words are fenced.

    `refs` are the texts of its refs, for an assignee that has no tool to read them with. Where the
    giver has read untrusted text, its title, names and lines are fenced, too.
    """
    limits = f"Limits: {_limits(node.budget)}"
    lines = ["[Task] You have been given a task.", f"From: {giver}", f"Id: {node.id}", limits]
    title = f"Title: {title_of(node)}"
    named = ", ".join(f"{one_line(name)} ({path})" for name, path in node.refs.items())
    to_read = [f"To read with read_ref: {one_line(named)}"] if node.refs and refs is None else []
    task, lines_to_prove = node.task.strip(), done_means(node)
    if node.label:
        task = "\n\n".join(["\n".join([title, *to_read]), task, *lines_to_prove])
        lines_to_prove = []
    else:
        lines = [lines[0], title, *lines[1:], *to_read]
    words = fence.enclose_words(task, thread=thread, author=giver, kind="what you are asked to do")
    return "\n\n".join(["\n".join(lines), words, *(refs or ()), *lines_to_prove])


def _limits(budget: Budget) -> str:
    parts = [counted(budget.turns, "turn")]
    parts += [] if budget.usd is None else [f"${budget.usd:.2f}"]
    parts += [] if budget.tokens is None else [f"{budget.tokens:,} tokens"]
    parts += [] if budget.seconds is None else [f"{budget.seconds / 60:,.0f} minutes of work"]
    return ", ".join(parts)


EVIDENCE_FORMS: dict[LineKind, str] = {
    "file": "file:NAME",
    "ran": "ran:COMMAND",
    "judged": "in words, for a reviewer",
}
"""The form of evidence that each kind of acceptance line asks for."""


def done_means(node: WorkNode) -> list[str]:
    """Return the section with the acceptance lines, one line each; an empty list without any."""
    if not node.lines_to_prove:
        return []
    lines = [f"- {one_line(line)}{asked_kind(node, line)}" for line in node.lines_to_prove]
    return ["Done means:\n" + "\n".join(lines)]


def asked_kind(node: WorkNode, line: str) -> str:
    """Return, in brackets, the form of evidence that an acceptance line asks for; else nothing."""
    kind = node.line_kinds.get(line)
    return "" if kind is None else f" [{EVIDENCE_FORMS[kind]}]"


def completion(
    node: WorkNode,
    *,
    worker: str,
    text: str,
    thread: str,
    longest: int = LONGEST,
    label: Label = CLEAN,
) -> str:
    """Return how a node ended as text for the thread of its creator, with `longest` characters of
    its result.

    The worker's words are fenced. If the result has a label, the title and the file names are
    fenced, too.
    """
    lines = [
        f"[Task] {_ENDINGS[node.status].format(worker=worker)}",
        f"Id: {node.id}",
        f"Status: {node.status}" + (f" ({node.stop_reason})" if node.stop_reason else ""),
    ]
    title, told, words = f"Title: {title_of(node)}", _told(node), text[:longest]
    if label:
        words = "\n".join([title, *told]) + f"\n\n{words}"
    else:
        lines = [lines[0], title, *lines[1:], *told]
    shown = fence.enclose_words(words, thread=thread, author=worker, kind="the result")
    return "\n".join(lines) + f"\n\n{shown}" + _rest(text, longest)


def _told(node: WorkNode) -> list[str]:
    """Return the lines about a node's files and about what could not be confirmed."""
    lines: list[str] = []
    if node.manifest:
        names = sorted(node.manifest)
        shown = ", ".join(f"nodes/{node.id}/published/{name}" for name in names[:20])
        more = f" and more, {len(names)} in all" if len(names) > 20 or len(shown) > NAMES else ""
        lines.append(f"Files: {one_line(shown)[:NAMES]}{more}")
    if node.doubts:
        lines.append(f"Not confirmed: {not_confirmed(node, most=DOUBTS)}")
    return lines


def not_confirmed(node: WorkNode, *, most: int = REASON) -> str:
    """Return a node's doubts in one line for agents, with the ids of the work that they name."""
    return truncate("; ".join(sentence(doubt, with_id=True) for doubt in node.doubts), most)


_ENDINGS = {
    NodeStatus.COMPLETED: "{worker} has finished a task of yours.",
    NodeStatus.PARTIAL: "{worker} ended a task of yours in part. What there is of it follows.",
    NodeStatus.FAILED: "{worker} could not do a task of yours.",
    NodeStatus.CANCELLED: "A task of yours was cancelled.",
}


def so_far(why: str, result: str | None) -> str:
    """Return why a node ended early, and what its agent has so far."""
    return why if result is None else f"{why}\n\nWhat there is so far:\n{result}"


def for_person(node: WorkNode, text: str) -> str:
    """Return a result as a person reads it: the result, and in one line what limits it."""
    verdict = node.stop_reason and _VERDICTS.get(node.stop_reason)
    return f"{truncate(text, MESSAGE - len(verdict) - 2)}\n\n{verdict}" if verdict else text


_VERDICTS = {
    StopReason.PARTLY_REACHED: "Reached only in part.",
    StopReason.NOT_REACHED: "Not reached.",
}


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def task(self) -> str: ...


def title_of(node: _Named) -> str:
    """Return a node's title in one line, else the first line of its task, else its id."""
    return truncate(one_line(node.title), TITLE) or first_line(node.task) or node.id


def subject_of(node: _Named) -> str:
    """Return the title of a node for people: that of a goal's node is the goal, in a few words.

    Every view, event and report to a person uses it, so that a piece of work has one name. The
    texts for agents use `title_of`.
    """
    if node.title == GOAL_TITLE:
        return name_from_goal(node.task) or title_of(node)
    return REFLECTION_TITLE if node.title == _OLD_REFLECTION_TITLE else title_of(node)


def truncate(text: str, most: int) -> str:
    """Return the text, cut to `most` characters with `…` at the end if it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def join_limited(names: Sequence[str], by: str = "; ") -> str:
    """Join the first names into one line, and say how many more there are."""
    shown = by.join(names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown}{by}and {len(names) - LISTED} more"


def fit_message(text: str, *, whole: str = "") -> str:
    """Return the text so that it fits into a message: not blank, and not longer than MESSAGE.

    `whole` says where all of a long text is.
    """
    if not text.strip():
        return NO_WORDS
    if len(text) <= MESSAGE:
        return text
    return f"{text[:LONGEST]}\n\n… ({len(text) - LONGEST:,} characters more.{whole and ' '}{whole})"


def fit_doubts(doubts: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """Return as many doubts as are stored, each cut to its share of `DOUBTS`."""
    most = max(TITLE, DOUBTS // max(1, len(doubts)))
    shown = [changed(doubt, words=truncate(doubt.words, most)) for doubt in doubts[:MOST_DOUBTS]]
    if more := len(doubts) - len(shown):
        shown[-1] = Doubt(kind="more", words=f"and {more + 1:,} more points")
    return tuple(shown)


def first_line(text: str) -> str:
    """Return the first line of a text, cut to the length of a title."""
    first = next(iter(text.strip().splitlines()), "")
    return first if len(first) <= 80 else first[:79] + "…"


def _rest(text: str, longest: int) -> str:
    if len(text) <= longest:
        return ""
    where = "in its files" if longest == LONGEST else "by task_output"
    return f"\n… ({len(text) - longest:,} characters more {where})"


def question_name(text: str) -> str:
    """Return how a node's question is named where the node waits for its answer."""
    return f"your question {truncate(text, TITLE)!r}"


def stage_wait(name: str, *, is_redone: bool = False) -> str:
    """Return the reason of a wait for a stage. The web UI reads it (`waitingReason.ts`)."""
    return f"stage {name!r}, done again" if is_redone else f"stage {name!r}"


def stopped_by_model(reason: str, team_id: TeamId | None) -> str:
    """Return the question that an agent asks the person when its model refuses every call.

    With a team's id it names the command that gives the team's coordinator another model.
    """
    text = f"I cannot go on: {reason} Tell me when I should try again."
    if team_id is None:
        return text
    return f"{text} `agiraph set {team_id} --model NAME` gives me another model."
