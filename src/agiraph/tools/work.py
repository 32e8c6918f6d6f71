"""Work tools: report progress, and end a node with its result."""

import asyncio
from typing import Annotated

from pydantic import Field

from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeCheckpoint
from agiraph.domain.outcomes import Answer, Done, Finished
from agiraph.domain.triggers import NOTHING_TO_DO
from agiraph.domain.work import StopReason
from agiraph.run_context import RunContext
from agiraph.services.board import texts
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools import acceptance
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


async def _doubts(ctx: RunContext, evidence: list[str]) -> str | None:
    """Return what cannot be confirmed of the result; the first time, refuse it for that."""

    def scratch() -> list[str]:
        folder, _ = ctx.scope.resolve("scratch", "w")
        with folder:
            return [entry.name for entry in folder.walk()]

    files = await asyncio.to_thread(scratch)
    missing = acceptance.missing_evidence(ctx, files, evidence)
    if missing and not acceptance.was_sent_back(ctx):
        raise Refused(
            f"{acceptance.NOT_ACCEPTED} {'; '.join(missing)}. Put it right, or publish again and "
            "say in the summary why it cannot be done; then the one who asked decides."
        )
    if not missing and ctx.node.parent_id is not None and not acceptance.has_effect(ctx, files):
        missing = ["nothing was read, written, run or given to anyone"]
    return "; ".join(missing) or None


@tool(
    effect="repeatable",
    roles=frozenset({"worker"}),
    ends_node=True,
    counts_as_work=False,
    guidance="""
    Hand in your work on this node. Everything in scratch/ is published as it is then, for good:
    others can read it, nobody can change it, and the node is done. Check your files first.
    Write the summary for someone who has not seen your thread: what you found or made, which
    files hold it, what is missing or uncertain. Where your assignment says what done means, give
    one piece of evidence for each line, in its order: file:NAME, ran:COMMAND, or words.
    """,
)
async def publish(
    ctx: RunContext,
    summary: Summary,
    evidence: Annotated[
        list[str] | None, Field(description="For each line of what done means, in its order")
    ] = None,
) -> Answer:
    """Publish what is in scratch/ and end this node with a summary."""
    doubts = await _doubts(ctx, evidence or [])
    return await _publish(ctx, summary, StopReason.PUBLISHED, doubts)


@tool(
    effect="repeatable",
    roles=frozenset({"coordinator"}),
    ends_node=True,
    counts_as_work=False,
    guidance="""
    Call this when your assignment is done, and only then. It publishes your scratch/ and ends this
    piece of work. If the assignment is the team's goal, it ends the team's work with it; any other
    piece of work ends alone, and the work on the goal goes on. If it cannot be done, say so plainly
    in the summary: what was tried, what stands in the way, what would help.
    """,
)
async def finish(ctx: RunContext, summary: Summary) -> Answer:
    """Declare your assignment done, with the answer or a summary of the result."""
    is_quiet = ctx.node.source == "trigger" and summary.strip() == NOTHING_TO_DO
    reason = StopReason.NOTHING_TO_DO if is_quiet else StopReason.FINISHED
    return await _publish(ctx, summary, reason)


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
