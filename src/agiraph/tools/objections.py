"""Objections: everything that speaks against a result when its agent ends the node.

The first time they send the result back in one refusal. The second time the node ends with them as
its doubts.
"""

import asyncio
import re
from collections.abc import Sequence

from agiraph.domain.errors import Refused
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.run_context import RunContext
from agiraph.services.board import texts
from agiraph.store import nodes
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools import acceptance, addresses, summary_claims

RESULT_START = 40
"""Letters and digits of a result by which it is recognised in a thread."""


async def doubts(
    ctx: RunContext, summary: str, evidence: Sequence[str], *, ending: str
) -> str | None:
    """Return what speaks against the result, or None; the first time, raise `Refused` for it."""
    files = await asyncio.to_thread(_scratch_files, ctx)
    node, children = await ctx.store.read(_load, ctx.node)
    found = [
        *_about_children(ctx, children, summary),
        *_about_lines(ctx, node, files, evidence),
        *summary_claims.objections(ctx, [summary, *evidence], files, children),
        *_about_addresses(ctx, summary),
    ]
    if found and not acceptance.was_sent_back(ctx):
        used, most = ctx.consumed.turns, node.budget.turns
        advice = acceptance.HOW_TO_SET_LINES if acceptance.NO_LINES in found else ""
        raise Refused(
            f"{acceptance.NOT_ACCEPTED} {'; '.join(found)}.{advice} Put it right ({used} of {most} "
            f"turns are used), or call {ending} again and say in the summary why it cannot be "
            "done; then the work ends with these doubts, and whoever asked for it reads them."
        )
    return "; ".join(found) or None


def _load(tx: Tx, node: WorkNode) -> tuple[WorkNode, list[WorkNode]]:
    """Return the node as it is now, with the lines that were added since, and its delegated tasks;
    reviews of its result are none."""
    children = [n for n in nodes.children(tx, node.id) if n.reviews_call is None]
    return NODES.get(tx, node.id), children


def _scratch_files(ctx: RunContext) -> list[str]:
    folder, _ = ctx.scope.resolve("scratch", "w")
    with folder:
        return [entry.name for entry in folder.walk()]


def _about_lines(
    ctx: RunContext, node: WorkNode, files: Sequence[str], evidence: Sequence[str]
) -> list[str]:
    """Return what is missing for the acceptance lines; without lines, whether anything was done."""
    if node.acceptance:
        return acceptance.missing_evidence(ctx, node, files, evidence)
    # A goal without end has no state that is done.
    found = [acceptance.NO_LINES] if node.is_goal and ctx.team.mode == "finite" else []
    # Work beside the goal may be a question whose answer the agent knows already.
    if (node.is_goal or node.parent_id is not None) and not acceptance.has_effect(ctx, files):
        found.append(acceptance.NO_EFFECT)
    return found


def _about_children(ctx: RunContext, children: Sequence[WorkNode], summary: str) -> list[str]:
    """Return the delegated tasks that are open, not done, doubted, or whose result was not read.

    The first time all of them are listed. After that, a task that is not done or doubted is
    accounted for if the summary gives its id; what is left then is read by people, who get no ids.
    """
    found: list[str] = []
    was_listed = acceptance.was_sent_back(ctx)
    for child in children:
        name = repr(texts.title_of(child)) + ("" if was_listed else f" ({child.id})")
        unnamed = "" if was_listed or child.id in summary else ", and the summary does not name it"
        if child.cancel_requested:
            continue  # it was told to stop, and does so at its next step
        if not child.status.is_final:
            found.append(f"{name} is not done yet ({child.status}), and cannot end before this")
        elif child.status is NodeStatus.COMPLETED and not _was_shown(ctx, child):
            found.append(f"the result of {name} has come and was not read")
        elif was_listed and child.id in summary:
            continue
        elif child.doubts:
            why = texts.truncate(child.doubts, texts.TITLE)
            found.append(f"{name} has doubts{unnamed}: {why}")
        elif child.status not in (NodeStatus.COMPLETED, NodeStatus.CANCELLED):
            found.append(f"{name} is {child.status}{unnamed}")
    return found


def _was_shown(ctx: RunContext, child: WorkNode) -> bool:
    """Whether a turn of the thread holds the child's id and the beginning of its result."""
    start = _letters(child.result or "")[:RESULT_START]
    return any(
        turn.role in ("tool", "user") and child.id in turn.text and start in _letters(turn.text)
        for turn in ctx.transcript.turns
    )


def _about_addresses(ctx: RunContext, summary: str) -> list[str]:
    """Return the addresses in the summary that the thread neither found nor opened."""
    unknown = addresses.made_up(ctx, summary)
    named = texts.join_limited([texts.truncate(each, texts.TITLE) for each in unknown], by=", ")
    return [f"these addresses were neither found nor opened here: {named}"] if unknown else []


def _letters(text: str) -> str:
    """Return the text without spaces and punctuation, which frames and lists change."""
    return re.sub(r"\W+", "", text)
