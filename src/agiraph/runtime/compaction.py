"""Compaction: a thread that outgrows its model's window goes on from a summary.

First a turn to write down what matters, then a summary in the model's own words, then one commit
that cuts: from there on the thread is shown from the summary. Old turns stay where they are.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agiraph.domain.chat import Transcript
from agiraph.domain.errors import Refused
from agiraph.domain.messages import NEEDS_ANSWER
from agiraph.domain.outcomes import Outcome
from agiraph.domain.work import StopReason, WorkNode
from agiraph.prompts import prompt
from agiraph.services.board import notices, planning
from agiraph.services.lifecycle import journal
from agiraph.services.lifecycle.journal import Notice
from agiraph.services.triggers import promises
from agiraph.store import messages, nodes, stages
from agiraph.store.tx import Tx
from agiraph.tools.context import RunContext

if TYPE_CHECKING:
    from agiraph.runtime.loop import Loop

FULL = 0.75
"""The share of the window at which it is time: the rest is for the flush, the summary, a reply."""
DIGEST = 200
"""How much of each old answer a digest without a model keeps, in characters."""
FILES = 100


@dataclass(frozen=True, slots=True)
class Compaction:
    window: int
    """Tokens the agent's model can be shown at once."""

    async def fit(self, loop: "Loop", ctx: RunContext) -> StopReason | Outcome | None:
        """Shorten the thread if it is time; why not, if money is missing, or how it ended."""
        transcript = ctx.transcript
        number = transcript.cuts + 1
        flush, ask = f"flush:{number}", f"compact:{number}"
        if not transcript.has(ask):
            if not transcript.has(flush):
                if size(transcript) < FULL * self.window:
                    return None
                notice = Notice(flush, prompt("compaction_flush"))
                if reason := await loop.catch_up(ctx, notice, hear=False):
                    return reason
            if transcript.last_spoken.ref == flush:
                reply = await loop.think(ctx, "compaction")
                if outcome := await loop.act(ctx, reply.calls):
                    return outcome
            if reason := await loop.catch_up(ctx, Notice(ask, prompt("compact")), hear=False):
                return reason
        if transcript.last_spoken.ref == ask:
            await loop.think(ctx, "compaction", may_call=False)
        last = transcript.last_reply
        await self._cut(ctx, number, last.text if last else "")
        return None

    async def force(self, ctx: RunContext) -> bool:
        """The server says it is too long: cut without asking it; False if that was done before."""
        if ctx.transcript.last_spoken.extra.get("cut"):
            return False
        await self._cut(ctx, ctx.transcript.cuts + 1, digest(ctx.transcript, self.window))
        return True

    async def _cut(self, ctx: RunContext, number: int, summary: str) -> None:
        around = await ctx.store.read(_around, ctx.node)
        state = "\n\n".join([await asyncio.to_thread(_state, ctx), *around])
        text = prompt("compacted").format(summary=summary or "(none)", state=state)
        ref = f"summary:{number}"
        ctx.heard(await ctx.store.write(journal.compact, ctx.lease, ref=ref, text=text))


def size(transcript: Transcript) -> int:
    """How many tokens the next request will have: counted by the model, or about what it takes."""
    said = 0
    for index in range(len(transcript.turns) - 1, transcript.first - 1, -1):
        turn = transcript.turns[index]
        if turn.role == "assistant" and turn.usage.input_tokens:
            return turn.usage.tokens + said // 4
        said += len(turn.text) + sum(len(str(call.arguments)) for call in turn.calls)
    return (said + len(transcript.system)) // 4


def digest(transcript: Transcript, window: int) -> str:
    """What was done, call by call, in few words: for want of a model that could still read it."""
    answers = {t.ref: t.text for t in transcript.turns if t.role == "tool"}
    lines: list[str] = []
    for turn in transcript.spoken():
        if turn.role == "assistant" and turn.text:
            lines.append(f"You said: {turn.text[:DIGEST]}")
        for call in turn.calls:
            subject = str(next(iter(call.arguments.values()), ""))[:DIGEST]
            lines.append(f"{call.name}({subject}) → {answers.get(call.id, '')[:DIGEST]}")
    room = window  # a quarter of the window, at four characters a token
    while lines and sum(map(len, lines)) > room:
        lines.pop(0)
    return "\n".join(lines)


def _around(tx: Tx, node: WorkNode) -> list[str]:
    """What was given away, what is waited for together, and what a person was asked."""
    lines: list[str] = []
    given = [
        f"- {notices.title_of(child)} ({child.id}): {child.status}"
        + ("" if child.assignee_id is None else f", {planning.name_of(tx, child.assignee_id)}")
        for child in nodes.children(tx, node.id)
    ]
    if given:
        lines.append("Tasks you have given away:\n" + "\n".join(given))
    together = [f"- {stage.name}: {stage.status}" for stage in stages.of_node(tx, node.id)]
    if together:
        lines.append("Your stages:\n" + "\n".join(together))
    asked = [
        f"- {question.text[:DIGEST]} ({'answered' if question.answered_at else 'open'})"
        for question in messages.of_node(tx, node.id)
        if question.kind in NEEDS_ANSWER
    ]
    if asked:
        lines.append("What you asked the human:\n" + "\n".join(asked))
    assert node.assignee_id is not None
    promised = [
        promises.as_line(tx, given) for given in promises.open_of_agent(tx, node.assignee_id)
    ]
    if promised:
        lines.append("What you have promised:\n" + "\n".join(promised))
    return lines


def _state(ctx: RunContext) -> str:
    """What is so, as rows and files have it, whatever the summary says."""
    lines = [f"Your assignment:\n{ctx.node.task}"]
    if ctx.node.acceptance:
        lines.append("Done means:\n" + "\n".join(f"- {line}" for line in ctx.node.acceptance))
    folder, name = ctx.scope.resolve("scratch", "r")
    with folder:
        try:
            files = [f"- {e.name} ({e.size} bytes)" for e in folder.sub(name).walk(limit=FILES)]
        except Refused:
            files = [f"- more than {FILES}; list_files shows them"]
    lines.append("Files in scratch/:\n" + ("\n".join(files) or "- none"))
    used = f"{ctx.tally.turns} of {ctx.node.budget.turns} turns are used."
    return "\n\n".join([*lines, used])
