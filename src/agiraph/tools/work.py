"""Work tools: report progress, and end a node with its result."""

import asyncio
from collections.abc import Awaitable
from typing import Annotated

from pydantic import Field

from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeCheckpoint
from agiraph.domain.outcomes import Answer, Done, Finished, InTransaction
from agiraph.domain.triggers import NOTHING_TO_DO, says_nothing_to_do
from agiraph.domain.work import ANSWER, StopReason, is_answer
from agiraph.run_context import RunContext
from agiraph.services.board import acceptance_lines, texts
from agiraph.services.board.acceptance_lines import LINE_CHARACTERS, MAX_LINES
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools import acceptance, objections, reviewing
from agiraph.tools.base import tool

SUMMARY_CHARACTERS = 20_000
"""The summary goes into the creator's thread, where every later model call pays for it."""

Summary = Annotated[
    str,
    Field(
        min_length=1,
        max_length=SUMMARY_CHARACTERS,
        description="What was done and what came of it, for whoever asked; details go in files",
    ),
]


Evidence = Annotated[
    list[str] | None, Field(description="For each line of what done means, in its order")
]


async def _submit(
    ctx: RunContext, summary: str, evidence: list[str], reason: StopReason, *, ending: str
) -> Answer | InTransaction:
    """Check the result, have it reviewed if it needs a review, and end the node with it."""
    doubts = await objections.doubts(ctx, summary, evidence, ending=ending)

    def publish(doubts: str | None) -> Awaitable[Answer]:
        return _publish(ctx, summary, reason, doubts)

    return await reviewing.submit(ctx, summary, evidence, doubts, publish, ending=ending)


async def _publish(
    ctx: RunContext, summary: str, reason: StopReason, doubts: str | None = None
) -> Answer:
    """Publish scratch/ and end the node. Publishing is idempotent, so a crash may repeat it."""
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    # Published before the node's end is committed: a crash in between repeats the call, which finds
    # the published folder; the other order could end a node whose files were never published.
    manifest = await asyncio.to_thread(folder.publish, summary)
    files = texts.join_limited([texts.truncate(n, texts.TITLE) for n in sorted(manifest)], by=", ")
    return Done(f"Published: {files or 'no files'}.", Finished(summary, reason, manifest, doubts))


@tool(
    effect="repeatable",
    roles=frozenset({"worker"}),
    ends_node=True,
    counts_as_work=False,
    guidance="""
    Submit your work on this node: the only call of its reply, after you have read the answers of
    all others. Everything in scratch/ is published as it is then, for good: others can read it,
    nobody can change it, and the node is done. Check your files first.
    Write the summary for someone who has not seen your thread: what you found or made, which
    files hold it, what is missing or uncertain. Where your assignment says what done means, give
    one piece of evidence for each line, in its order: file:NAME, ran:COMMAND, or words.
    """,
)
async def publish(
    ctx: RunContext, summary: Summary, evidence: Evidence = None
) -> Answer | InTransaction:
    """Publish what is in scratch/ and end this node with a summary."""
    if ctx.node.source == "trigger" and says_nothing_to_do(summary):
        return await _publish(ctx, summary, StopReason.NOTHING_TO_DO)
    return await _submit(ctx, summary, evidence or [], StopReason.PUBLISHED, ending="publish")


@tool(
    effect="repeatable",
    roles=frozenset({"coordinator"}),
    ends_node=True,
    counts_as_work=False,
    guidance="""
    Call this when your assignment is done, and only then: the only call of its reply, after the
    tasks you gave away have ended and you have read their results. It publishes your scratch/ and
    ends this piece of work. If the assignment is the team's goal, it ends the work on the goal; any
    other piece of work ends alone, and the work on the goal goes on. Give one piece of evidence for
    each acceptance line, in its order: file:NAME, ran:COMMAND, or words. If it cannot be done, say
    so plainly in the summary: what was tried, what stands in the way, what would help.
    """,
)
async def finish(
    ctx: RunContext,
    summary: Summary = "",
    evidence: Evidence = None,
    nothing_to_do: Annotated[
        bool, Field(description="Only where a trigger woke you and nothing needs attention")
    ] = False,
) -> Answer | InTransaction:
    """Declare your assignment done, with the answer or a summary of the result."""
    if nothing_to_do and ctx.node.source != "trigger":
        raise Refused(
            "nothing_to_do is for work that a trigger started. Somebody asked for this: do it, or "
            "say in the summary why it cannot be done."
        )
    if not summary and not nothing_to_do:
        raise Refused("finish: 'summary' is missing. Say what was done and what came of it.")
    if nothing_to_do or (ctx.node.source == "trigger" and says_nothing_to_do(summary)):
        return await _publish(ctx, summary or NOTHING_TO_DO, StopReason.NOTHING_TO_DO)
    return await _submit(ctx, summary, evidence or [], StopReason.FINISHED, ending="finish")


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    sets_acceptance=True,
    counts_as_work=False,
    guidance="""
    Write down at the start what done means: a few statements that can be checked, such as
    "`report.md` compares three products" or "the tests pass". finish asks for evidence for each.
    You may call it again to refine them, until a result was judged by them; from then on, and
    always for the lines that the person gave, lines can only be added.
    """,
)
def set_acceptance(
    tx: Tx,
    ctx: RunContext,
    lines: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=LINE_CHARACTERS)]],
        Field(min_length=1, max_length=MAX_LINES, description="All lines; they replace yours"),
    ],
) -> Answer:
    """Set the acceptance lines of your assignment: what must be true when it is done."""
    if any(is_answer(line) for line in lines):
        raise Refused(f"Only the person may set the line {ANSWER!r}. Say what can be checked.")
    fixed = None if acceptance.was_sent_back(ctx) else NODES.get(tx, ctx.node.id).given_lines
    kept = acceptance_lines.replace_lines(tx, ctx.node.id, lines, keep=fixed)
    shown = "\n".join(f"{number}. {line}" for number, line in enumerate(kept, 1))
    return Done(f"Done means:\n{shown}")


@tool(
    effect="transaction",
    always_granted=True,
    counts_as_work=False,
    guidance="""
    Note where you stand after a part of the work: what is done, what comes next. It is shown to
    people who watch, and it is what a successor starts from if you have to stop. It is also the
    moment to reflect: what you learned that will matter again goes into your notes (memory_write).
    """,
)
def checkpoint(tx: Tx, ctx: RunContext, summary: Summary) -> Answer:
    """Record progress without ending the work."""
    NODES.update(tx, ctx.node.id, checkpoint=summary)
    tx.emit(ctx.team.id, NodeCheckpoint(node_id=ctx.node.id, summary=summary))
    return Done("Noted.")
