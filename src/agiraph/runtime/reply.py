"""Reply: answers what a person said at once, beside whatever the agent works on."""

import asyncio
import contextlib
from functools import reduce
from typing import TYPE_CHECKING

from agiraph.domain.chat import Transcript, Turn
from agiraph.domain.errors import ModelError, Refused
from agiraph.domain.ids import HUMAN
from agiraph.domain.messages import Message
from agiraph.domain.outcomes import Finished, Outcome
from agiraph.domain.taint import graver
from agiraph.domain.work import StopReason
from agiraph.prompts import prompt
from agiraph.runtime.prompt import Opening, guidance, note, titled
from agiraph.runtime.spill import keep_result, shown_result
from agiraph.services.board import notices, taint
from agiraph.services.knowledge import items, recall
from agiraph.services.lifecycle import conversation
from agiraph.services.lifecycle.conversation import Work
from agiraph.services.lifecycle.journal import Notice
from agiraph.services.triggers import promises
from agiraph.store import messages, nodes
from agiraph.store.tx import Tx
from agiraph.tools.context import RunContext
from agiraph.tools.foreground import DECIDES, FOREGROUND, LOOKS_UP

if TYPE_CHECKING:
    from agiraph.runtime.loop import Loop

RECENT = 30
"""Messages of the conversation that a reply is shown."""
LONGEST = 2000
"""Characters of each of them."""
BOARD = 20

WITHOUT_A_MODEL = (
    "I have your message and will get to work on it. (I could not think of a proper answer just "
    "now: {reason})"
)
NOTHING_SAID = "[Runtime] The human reads only what you write as text. Answer them now, briefly."


async def opening(ctx: RunContext) -> Opening:
    """What an agent is told before it answers: who it is, whom it talks to, how things stand."""
    folder = ctx.home.team(ctx.team.id)
    around, tainted_by = await ctx.store.read(_around, ctx)
    asked = await ctx.store.read(messages.to_answer, ctx.node.id)
    system = [
        note(folder, "SOUL.md"),
        f"You are {ctx.agent.name}.",
        note(folder, f"agents/{ctx.agent.name}/IDENTITY.md"),
        prompt("reply"),
        guidance(tool.spec for tool in FOREGROUND.values()),
        f"# The team's goal\n\n{ctx.team.goal}",
        *around,
        f"Today is {ctx.clock.now():%A, %d %B %Y, %H:%M} (UTC).",
    ]
    said = "\n\n".join(message.text for message in asked)
    return Opening(
        "\n\n".join(section for section in system if section.strip()),
        said,
        tuple(a for message in asked for a in message.attachments),
        tainted_by,
    )


def _around(tx: Tx, ctx: RunContext) -> tuple[list[str], str | None]:
    """How things stand, and what strangers have to do with the telling of it."""
    agent, team = ctx.agent, ctx.team
    said = messages.lately(tx, team.id, agent.id, limit=RECENT)
    before = [message for message in said if message.reply_id != ctx.node.id]
    latest = nodes.latest(tx, team.id, limit=BOARD)
    work = [
        f"- {notices.title_of(node)} ({node.id}): {node.status}"
        + (f", {node.waiting_reason}" if node.waiting_reason else "")
        for node in latest
    ]
    tainted_by = reduce(graver, (m.tainted_by for m in before), taint.of_board(tx, latest))
    known = recall.as_lines(items.memories(tx, agent.id))
    promised = [promises.as_line(tx, promise) for promise in promises.open_of_agent(tx, agent.id)]
    return [
        titled("What you know of the human", "\n".join(known)),
        titled("The conversation so far", "\n\n".join(_line(m, agent.name) for m in before)),
        titled("The board", "\n".join(work)),
        titled("What you promised", "\n".join(promised)),
    ], tainted_by


def _line(message: Message, name: str) -> str:
    who = "Human" if message.sender == HUMAN else name
    kind = "" if message.kind in ("message", "nudge") else f" ({message.kind})"
    asks_for = "" if message.call is None else f" {message.call.name}({message.call.arguments})"
    text = message.text + asks_for
    text = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return f"[{message.created_at:%d %b %H:%M}] {who}{kind}: {text}"


async def answer(loop: "Loop", ctx: RunContext) -> Outcome:
    """Talk until there is something to say; whatever happens, the person gets an answer."""
    try:
        text = await _talk(loop, ctx)
    except ModelError as error:
        return await without_a_model(ctx, error)
    await loop.caller.settle(ctx)
    return await _say(ctx, text)


async def without_a_model(ctx: RunContext, why: Exception) -> Outcome:
    """A plain acknowledgement: what was asked is queued all the same."""
    return await _say(ctx, WITHOUT_A_MODEL.format(reason=why))


async def _say(ctx: RunContext, text: str) -> Outcome:
    text, manifest = await _kept(ctx, text)
    outcome = Finished(text, StopReason.FINISHED, manifest)
    decided = _decided(ctx.transcript)
    await ctx.store.write(conversation.conclude, ctx.lease, outcome, text=text, work=decided)
    return outcome


async def _kept(ctx: RunContext, text: str) -> tuple[str, dict[str, str]]:
    """An answer as a message can carry it; of a longer one the whole is published as a file."""
    if len(text) <= notices.MESSAGE:
        return text, {}
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    manifest: dict[str, str] = {}
    await asyncio.to_thread(folder.prepare, ctx.node, ctx.node.refs)
    name = await keep_result(ctx, text)
    with contextlib.suppress(Refused):  # then it is in scratch/ alone, and the answer says so
        manifest = await asyncio.to_thread(folder.publish, notices.fitted(text))
    return shown_result(ctx, text, name, manifest), manifest


async def _talk(loop: "Loop", ctx: RunContext) -> str:
    await loop.act(ctx, ctx.transcript.open_calls())
    last = ctx.transcript.last_reply
    while last is None or not _is_said(ctx.transcript, last):
        silent = last is not None and not last.text.strip() and not last.calls
        nudge = [Notice(f"nudge:{last.seq}", NOTHING_SAID)] if silent and last else []
        if ctx.tally.turns >= ctx.node.budget.turns or await loop.catch_up(ctx, *nudge, hear=False):
            break
        last = await loop.think(ctx, "reply")
        await loop.act(ctx, last.calls)
    said = [t.text for t in ctx.transcript.turns if t.role == "assistant" and t.text.strip()]
    return said[-1] if said else WITHOUT_A_MODEL.format(reason="nothing was said.")


def _is_said(transcript: Transcript, reply: Turn) -> bool:
    """Whether this is the answer: words, and nothing looked up or refused that may change them."""
    failed = {t.ref for t in transcript.turns if t.role == "tool" and t.extra.get("failed")}
    return bool(reply.text.strip()) and not any(
        call.name in LOOKS_UP or call.id in failed for call in reply.calls
    )


def _decided(transcript: Transcript) -> Work | None:
    """What the model decided about work, by the last call that did."""
    failed = {t.ref for t in transcript.turns if t.role == "tool" and t.extra.get("failed")}
    made: list[Work] = [
        DECIDES[call.name]
        for turn in transcript.turns
        for call in turn.calls
        if call.name in DECIDES and call.id not in failed
    ]
    return "started" if "started" in made else made[-1] if made else None
