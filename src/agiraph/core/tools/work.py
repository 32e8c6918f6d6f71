"""Work tools: report progress, and end a node with its result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, Protocol, cast, get_args

from pydantic import BeforeValidator, Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeCheckpoint
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.outcomes import Answer, Done, Finished, InTransaction
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.text import fence
from agiraph.core.domain.work import ANSWER, Reached, StopReason, is_answer
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import acceptance_lines, texts, unfinished
from agiraph.core.services.board.acceptance_lines import LINE_CHARACTERS, MAX_LINES
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.triggers import promises
from agiraph.core.store import nodes
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import acceptance, objections
from agiraph.core.tools.base import tool
from agiraph.core.tools.calls.schemas import REQUIRED

SUMMARY_CHARACTERS = 20_000
"""The summary goes into the creator's thread, where every later model call pays for it."""

Summary = Annotated[
    str,
    Field(
        min_length=1,
        max_length=SUMMARY_CHARACTERS,
        description="The full answer: your messages are not seen",
    ),
]


Evidence = list[str] | None


def _one_of(value: object) -> object:
    """Return a verdict as it is meant; None for anything else, as if it were missing."""
    said = str(value).strip().lower()
    return said if said in get_args(Reached) else None


Verdict = Annotated[
    Reached | None,
    BeforeValidator(_one_of),
    Field(json_schema_extra={REQUIRED: True}),
]
NothingToDo = Annotated[bool, Field(description="Only if a trigger woke you")]
NOTHING = "There was nothing to do."
"""The result of work that a trigger started and that was ended with `nothing_to_do` alone."""


Kinds = Annotated[
    list[Literal["file", "ran", "judged", "any"]] | None,
    Field(description="What proves each line, in order"),
]
Publish = Callable[[Sequence[Doubt]], Awaitable[Answer]]
"""Ends the node with these doubts, or without any."""
GiveUp = Annotated[
    list[str] | None, Field(max_length=50, description="Open tasks to cancel: ids or titles")
]


async def _wait_for_tasks(ctx: RunContext) -> InTransaction | None:
    """Return the wait for the tasks that were given away and can still end; None without any."""
    if not await ctx.store.look(nodes.open_below, ctx.node.id):
        return None
    if not await ctx.store.write(unfinished.held_by, ctx.lease):
        return None

    async def refuse(refusal: Refused) -> Answer:
        raise refusal

    return InTransaction(lambda tx: unfinished.wait_for_tasks(tx, ctx.lease), refuse)


def _with_given_up(tx: Tx, node_id: NodeId, summary: str) -> str:
    """Return the summary with the titles of the tasks that were given up behind it."""
    titles = [texts.title_of(n) for n in nodes.children(tx, node_id) if n.given_up is not None]
    named = texts.join_limited([repr(title) for title in titles], by=", ")
    return f"{summary}\n\nGiven up before it was done: {named}." if titles else summary


async def _submit(
    ctx: RunContext,
    summary: str,
    evidence: list[str],
    reached: Reached | None,
    reason: StopReason,
    *,
    ending: str,
) -> Answer | InTransaction:
    """Wait for open tasks, check the result, have it reviewed if it needs that, and end the node
    with it. A result that its agent does not call reached needs no review."""
    if waits := await _wait_for_tasks(ctx):
        return waits
    summary = await ctx.store.look(_with_given_up, ctx.node.id, summary)
    reached = reached or _last_verdict(ctx)
    doubts = await objections.doubts(ctx, summary, evidence, reached, ending=ending)
    reason = reason if reached == "yes" else _REASONS[reached or "partly"]

    def publish(doubts: Sequence[Doubt]) -> Awaitable[Answer]:
        return _publish(ctx, summary, reason, doubts)

    if reached != "yes":
        return await publish(doubts)
    return await judged(ctx, summary, evidence, doubts, publish, ending=ending)


class _Judge(Protocol):
    async def __call__(
        self,
        ctx: RunContext,
        summary: str,
        evidence: Sequence[str],
        doubts: Sequence[Doubt],
        publish: Publish,
        *,
        ending: str,
        can_rework: bool = True,
    ) -> Answer | InTransaction: ...


async def judged(
    ctx: RunContext,
    summary: str,
    evidence: Sequence[str],
    doubts: Sequence[Doubt],
    publish: Publish,
    *,
    ending: str,
    can_rework: bool = True,
) -> Answer | InTransaction:
    """Publish a result, after the feature that judges results, if there is one, has had it."""
    for judge in cast(list[_Judge], brought("judge")):
        return await judge(
            ctx, summary, evidence, doubts, publish, ending=ending, can_rework=can_rework
        )
    return await publish(doubts)


_REASONS: dict[Reached, StopReason] = {
    "partly": StopReason.PARTLY_REACHED,
    "no": StopReason.NOT_REACHED,
}


def _last_verdict(ctx: RunContext) -> Reached | None:
    """Return what the agent said when it tried to end the node before; None if it said nothing."""
    said = [
        _one_of(call.arguments.get("reached"))
        for call, _ in acceptance.answered(ctx)
        if acceptance.properties(ctx, call).ends_node
    ]
    return cast(Reached | None, next(filter(None, reversed(said)), None))


async def _publish(
    ctx: RunContext, summary: str, reason: StopReason, doubts: Sequence[Doubt] = ()
) -> Answer:
    """Publish scratch/ and end the node. Publishing is idempotent, so a crash may repeat it."""
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    # Published before the node's end is committed: a crash in between repeats the call, which finds
    # the published folder; the other order could end a node whose files were never published.
    manifest = await asyncio.to_thread(folder.publish, summary)
    files = texts.join_limited([texts.truncate(n, texts.TITLE) for n in sorted(manifest)], by=", ")
    ended = Finished(summary, reason, manifest, tuple(doubts))
    return Done(f"Published: {files or 'no files'}.", ended)


@tool(
    effect="repeatable",
    roles=frozenset({"worker"}),
    ends_node=True,
    counts_as_work=False,
)
async def publish(
    ctx: RunContext,
    summary: Summary,
    reached: Verdict = None,
    evidence: Evidence = None,
    nothing_to_do: NothingToDo = False,
) -> Answer | InTransaction:
    """Submit your result and end the task. Call it alone. All of scratch/ is delivered. Evidence
    for each "Done means" line, in order: file:NAME, ran:COMMAND, words.
    """
    if nothing_to_do:
        return await _end_quietly(ctx, summary)
    reason = StopReason.PUBLISHED
    return await _submit(ctx, summary, evidence or [], reached, reason, ending="publish")


async def _end_quietly(ctx: RunContext, summary: str) -> Answer | InTransaction:
    """End work that a trigger started and in which nothing needed doing: nobody is told."""
    if ctx.node.source != "trigger":
        raise Refused(
            "nothing_to_do is for work that a trigger started. Somebody asked for this: do it, or "
            "say in the summary why it cannot be done."
        )
    if await ctx.store.read(promises.is_kept_in, ctx.node):
        raise Refused(
            "nothing_to_do is not for a promise: somebody waits for it. Do it, or say in the "
            "summary why it cannot be done."
        )
    waits = await _wait_for_tasks(ctx)
    return waits or await _publish(ctx, summary or NOTHING, StopReason.NOTHING_TO_DO)


@tool(
    effect="repeatable",
    roles=frozenset({"coordinator"}),
    ends_node=True,
    counts_as_work=False,
)
async def finish(
    ctx: RunContext,
    summary: Annotated[Summary, Field(json_schema_extra={REQUIRED: True})] = "",
    reached: Verdict = None,
    evidence: Evidence = None,
    nothing_to_do: NothingToDo = False,
    give_up: GiveUp = None,
) -> Answer | InTransaction:
    """Report the result and end this work. Call it alone. It waits for open tasks, unless you give
    them up. Answer the person first, then name files, checks and open points. Evidence for each
    acceptance line, in order: file:NAME, ran:COMMAND, or words.
    """
    if nothing_to_do:
        return await _end_quietly(ctx, summary)
    if not summary:
        raise Refused("finish: 'summary' is missing. Say what was done and what came of it.")
    if give_up:
        await ctx.store.write(endings.give_up, ctx.lease, give_up)
    reason = StopReason.FINISHED
    return await _submit(ctx, summary, evidence or [], reached, reason, ending="finish")


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    sets_acceptance=True,
    counts_as_work=False,
)
def set_acceptance(
    tx: Tx,
    ctx: RunContext,
    lines: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=LINE_CHARACTERS)]],
        Field(min_length=1, max_length=MAX_LINES, description="All lines; they replace yours"),
    ],
    kinds: Kinds = None,
) -> Answer:
    """Set what must be true when the work is done, in lines that can be checked: "`report.md`
    compares three products", "the tests pass".
    """
    if any(is_answer(line) for line in lines):
        raise Refused(f"Only the person may set the line {ANSWER!r}. Say what can be checked.")
    fixed = None if acceptance.was_sent_back(ctx) else NODES.get(tx, ctx.node.id).given_lines
    new = acceptance_lines.paired(lines, kinds)
    node = acceptance_lines.replace_lines(tx, ctx.node.id, new, keep=fixed)
    shown = [
        f"{number}. {line}{texts.asked_kind(node, line)}"
        for number, line in enumerate(node.acceptance, 1)
    ]
    return Done("\n".join(["Done means:", *shown]))


@tool(
    effect="transaction",
    always_granted=True,
    counts_as_work=False,
    in_sight=frozenset({"worker"}),
)
def checkpoint(
    tx: Tx,
    ctx: RunContext,
    summary: Annotated[str, Field(min_length=1, max_length=SUMMARY_CHARACTERS)],
) -> Answer:
    """Record what is done and what comes next, without ending the work. People see it, and a
    successor starts from it.
    """
    summary = fence.to_store(summary)
    NODES.update(tx, ctx.node.id, checkpoint=summary)
    tx.emit(ctx.team.id, NodeCheckpoint(node_id=ctx.node.id, summary=summary))
    return Done("Noted.")
