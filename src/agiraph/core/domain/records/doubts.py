"""Doubts: what could not be confirmed of a result, one point each."""

from collections.abc import Iterable, Sequence
from typing import Literal

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import value

DoubtKind = Literal[
    "unsaid",
    "question",
    "nothing_done",
    "no_evidence",
    "evidence",
    "file",
    "address",
    "task_cancelled",
    "task_open",
    "task_unread",
    "task_failed",
    "task_partial",
    "task_doubted",
    "unchecked",
    "review",
    "program",
    "more",
    "earlier",
]
"""What a doubt is about: that nobody said whether the work was reached, a question that nobody was
asked, that nothing was done, the evidence for an acceptance line, a file, an address, delegated
work, a line that nobody checked, the review, the program that did the work, and more points than
are stored; `earlier`: an earlier release stored it without a kind."""


@value
class Doubt:
    """One point that could not be confirmed."""

    kind: DoubtKind
    words: str
    """What is not confirmed; of other work, what follows its title in a sentence."""
    node_id: NodeId | None = None
    """The work that it is about, if that is other work than the one whose result it is."""
    title: str = ""
    """The title of that work."""


def sentence(doubt: Doubt, *, with_id: bool = False) -> str:
    """Return a doubt in one line; for agents, who act by ids, with the id of the work."""
    if doubt.node_id is None:
        return one_line(doubt.words)
    id = f" ({doubt.node_id})" if with_id else ""
    return one_line(f"{doubt.title!r}{id} {doubt.words}")


def as_text(sentences: Sequence[str]) -> str:
    """Return the lines that stand under a result where nothing opens: how many points there are,
    and each of them."""
    if not sentences:
        return ""
    listed = [f"  - {told[:1].upper()}{told[1:]}" for told in sentences]
    head = counted(len(sentences), "point not confirmed", "points not confirmed")
    return "\n".join([f"{head}:", *listed])


def sentences(doubts: Iterable[Doubt]) -> list[str]:
    """Return the doubts as people read them: without ids."""
    return [sentence(doubt) for doubt in doubts]
