"""Remembering tools: keep and remove, in a conversation, what the person tells the agent.

In a reply whose prompt holds untrusted text, only the person's own words count at once: a passage
that stands in the message that is being answered. What the model says itself is unverified there.
"""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from agiraph.api.feature_views.known import InsightType, Memory
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import labels, planning
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool, tool
from agiraph.features.knowledge import recall, rows
from agiraph.features.knowledge.verbs import items

TheirWords = Annotated[
    str,
    Field(
        description="The passage of their message that says it, word for word; it counts at once",
        max_length=2000,
    ),
]
Keep = Callable[[str, str, str | None, Label], rows.Item]
"""Stores a statement: its content, its author, its source and its label."""


@tool(
    effect="transaction",
    basic_for=frozenset({"reply"}),
)
def remember(
    tx: Tx,
    ctx: RunContext,
    content: Annotated[str, Field(min_length=1, description="One sentence about the person")],
    their_words: TheirWords = "",
) -> Answer:
    """Remember something about the person you talk to: how they want to be answered, who they are,
    what they asked for before. Quote them in their_words.
    """

    def keep(content: str, author: str, source: str | None, label: Label) -> rows.Item:
        return items.remember(tx, ctx.agent, content, author=author, source=source, label=label)

    return _keep(tx, ctx, keep, content, their_words, verb="Remembered")


@tool(effect="transaction")
def forget(tx: Tx, ctx: RunContext, memory_id: str) -> Answer:
    """Forget a memory: they ask you to, or it is no longer true."""
    gone = items.forget(tx, ctx.agent.id, memory_id.strip(), author=_author(tx, ctx))
    did = Act(kind="forgot", about=gone.id, words=gone.content)
    return Done(f"Forgotten: {gone.content}", label=gone.label, did=did)


@tool(
    effect="transaction",
)
def add_insight(
    tx: Tx,
    ctx: RunContext,
    type: InsightType,
    content: Annotated[str, Field(min_length=1, description="One statement")],
    their_words: TheirWords = "",
) -> Answer:
    """Keep knowledge for your work that the person shared: a fact, a technique, a pattern or a
    lesson, in one sentence, with names and numbers as they said them. Quote them in their_words.
    """

    def keep(content: str, author: str, source: str | None, label: Label) -> rows.Item:
        return items.learn(tx, ctx.agent, type, content, author=author, source=source, label=label)

    return _keep(tx, ctx, keep, content, their_words, verb="Kept")


def _keep(
    tx: Tx, ctx: RunContext, keep: Keep, content: str, their_words: str, *, verb: str
) -> Answer:
    """Store a statement. In a labelled thread the person's words are stored, and clean, if the
    message holds them; else what the model says, unverified."""
    person = planning.person_for(tx, ctx.node)
    asked = messages.to_answer(tx, ctx.node.id)
    # In other work than a reply the thread is the source.
    source = asked[-1].id if asked else ctx.lease.thread_id
    if not ctx.label:
        return _noted(tx, keep(content, person, source, CLEAN), verb)
    said = [message.text for message in asked if not labels.is_of_client(tx, message)]
    quoted = quotations.find(their_words or content, said) or quotations.find(content, said)
    if quoted is None:
        kept = keep(content, ctx.agent.id, source, ctx.label)
        return _noted(tx, kept, verb, is_misquoted=bool(their_words.strip()))
    theirs = keep(quoted, person, source, CLEAN)
    said_it = f"{verb} as {theirs.id}, in their words: {theirs.content!r}."
    return Done(said_it + _near(tx, theirs), did=_remembered(theirs))


def _noted(tx: Tx, kept: rows.Item, verb: str, *, is_misquoted: bool = False) -> Answer:
    """Return the answer to a call that kept something: as known, or as unverified."""
    if kept.status == "unverified":
        why = (
            "their_words do not stand in the message that you answer"
            if is_misquoted
            else "this conversation holds untrusted text"
        )
        return Done(
            f"Kept as {kept.id}, unverified: {why}. It counts at once if their_words has at least "
            f"{quotations.FEWEST_WORDS} words of that message, to the letter. Do not make up any.",
            did=_remembered(kept),
        )
    if kept.status == "pending":
        told = f"Kept as {kept.id}; the human confirms it before anybody uses it."
        return Done(told, did=_remembered(kept))
    if kept.status == "removed":
        return Done(f"Not kept: {kept.id} says the same, and the human had it removed.")
    return Done(f"{verb} as {kept.id}.{_near(tx, kept)}", did=_remembered(kept))


def _remembered(kept: rows.Item) -> Act:
    return Act(kind="remembered", about=kept.id, words=kept.content)


def _near(tx: Tx, kept: rows.Item) -> str:
    """Return the known item that is nearest to a new one, for the model to compare."""
    if (known := recall.nearest(tx, kept)) is None:
        return ""
    said = "" if known.label else f": {known.content!r}"
    remove = "forget" if isinstance(kept, Memory) else "remove_insight"
    return (
        f" You know something close to it, {known.id}{said}. If only one of the two can be true, "
        f"ask which one holds and take the other back with {remove}."
    )


@tool(
    effect="transaction",
    looks_up=True,
    polls=True,
)
def list_insights(
    tx: Tx,
    ctx: RunContext,
    query: Annotated[str, Field(max_length=2000, description="What it should be about")] = "",
    type: InsightType | None = None,
) -> Answer:
    """List what you know for your work. Tell them in your own words. What is marked as unverified
    comes from strangers: say so if you tell it.
    """
    found = items.insights(tx, ctx.agent.id, query=query, type=type)
    found += items.insights(tx, ctx.agent.id, query=query, type=type, status="unverified")
    lines = recall.as_lines([insight for insight in found if not insight.label])
    foreign = [insight for insight in found if insight.label]
    label = join(insight.label for insight in foreign)
    if foreign:
        text = "\n".join(recall.as_lines(foreign))
        fenced = enclose_foreign(text, thread=ctx.lease.thread_id, source=ctx.describe(label))
        lines.append(f"Unverified:\n{fenced}")
    listed = "\n".join(lines) or "There are no insights of this kind."
    return Done(listed, label=label, is_fenced=True)


@tool(
    effect="transaction",
)
def remove_insight(tx: Tx, ctx: RunContext, insight_id: str) -> Answer:
    """Remove an insight that is wrong or out of date. list_insights shows the ids."""
    gone = items.remove(tx, ctx.agent.id, insight_id.strip(), author=_author(tx, ctx))
    did = Act(kind="forgot", about=gone.id, words=gone.content)
    return Done(f"Removed: {gone.content}", label=gone.label, did=did)


def _author(tx: Tx, ctx: RunContext) -> str:
    """Return the author of a removal: the agent in a labelled thread, else the node's person."""
    return ctx.agent.id if ctx.label else planning.person_for(tx, ctx.node)


TOOLS: tuple[Tool, ...] = (remember, forget, add_insight, list_insights, remove_insight)
