"""Reply: answers a person's message at once, while the agent's work goes on in its own lane."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from agiraph.domain import quotations
from agiraph.domain.chat import ToolCall, Transcript, Turn
from agiraph.domain.errors import DailyLimitReached, ModelError, Refused
from agiraph.domain.fence import enclose_foreign, one_line
from agiraph.domain.labels import CLEAN, Label, join
from agiraph.domain.language import guess
from agiraph.domain.messages import Message
from agiraph.domain.outcomes import Finished, Outcome
from agiraph.domain.persons import is_person
from agiraph.domain.promising import promises_by_a_time, promises_work
from agiraph.domain.tools import ToolProperties, WorkDecision
from agiraph.domain.work import StopReason, WorkNode
from agiraph.prompts import prompt
from agiraph.run_context import RunContext
from agiraph.runtime.prompt import Opening, titled
from agiraph.runtime.shown_files import ShownFiles
from agiraph.runtime.spill import keep_result, shown_result
from agiraph.runtime.steps import Steps
from agiraph.services.board import labels, planning, texts
from agiraph.services.knowledge import items, recall
from agiraph.services.lifecycle import conversation, daily_limit
from agiraph.services.lifecycle.journal import SystemNote
from agiraph.services.triggers import promises
from agiraph.services.triggers.promises import Promise
from agiraph.store import file_labels, messages, nodes
from agiraph.store.tx import Tx
from agiraph.tools import scheduling
from agiraph.tools.foreground import FOREGROUND

MAX_MESSAGES = 30
"""Earlier messages of the conversation that the prompt shows."""
MESSAGE_CHARACTERS = 2000
"""Characters that the prompt shows of each message."""
MAX_NODES = 20
"""Nodes of the board that the prompt shows."""

WITHOUT_A_MODEL = (
    "I have your message and will get to work on it. (I could not think of a proper answer just "
    "now: {reason})"
)
OUT_OF_MONEY = (
    "I have your message, but today's limit for model calls is reached, so I cannot think about it "
    "now. I go on as soon as you allow more (the request is in your inbox), or by myself at 00:00 "
    "UTC."
)
ASKED_TO_PROMISE = "promise"
"""The ref of the note that asks for a promise."""
PROMISE_IT = (
    "[Runtime] You named a time for something you will do, and nothing reminds you of it. Call "
    f"{scheduling.promise.name} with that time and write your answer again; or write the answer "
    "without the time."
)
NOTHING_SAID = "[Runtime] The human reads only what you write as text. Answer them now, briefly."

CUT_OFF = "[Runtime] Your answer broke off before its end. Give it again, whole and much shorter."


async def opening(ctx: RunContext) -> Opening:
    """Return the prompt of a reply: identity, memories, conversation, board and promises."""
    state, label, asked = await ctx.store.read(_state, ctx)
    files = await _files(ctx)
    system = [
        files.note("SOUL.md"),
        f"You are {ctx.agent.name}.",
        files.note(_identity(ctx)),
        prompt("reply"),
        f"# The team's goal\n\n{ctx.team.goal}",
        *state,
        f"Today is {ctx.clock.now():%A, %d %B %Y, %H:%M} (UTC).",
        _language(asked),
    ]
    thread = ctx.lease.thread_id
    question = "\n\n".join(quotations.enclose_quoted(m.text, thread=thread) for m in asked)
    return Opening(
        "\n\n".join(section for section in system if section.strip()),
        question,
        tuple(a for message in asked for a in message.attachments),
        label | files.label,
    )


async def _files(ctx: RunContext) -> ShownFiles:
    """Return the files of the team, with the labels of those that a reply shows."""
    labelled = await ctx.store.read(file_labels.of, ctx.team.id, [_identity(ctx)])
    folder = ctx.home.team(ctx.team.id)
    return ShownFiles(folder, ctx.lease.thread_id, labelled, ctx.team.trust)


def _identity(ctx: RunContext) -> str:
    return f"agents/{ctx.agent.name}/IDENTITY.md"


def _language(asked: Sequence[Message]) -> str:
    """Return in which language to answer: that of the person's last message."""
    language = guess(asked[-1].text) if asked else None
    last = "the language of the person's last message"
    return f"Answer in {language}, {last}." if language else f"Answer in {last}."


def _state(tx: Tx, ctx: RunContext) -> tuple[list[str], Label, list[Message]]:
    """Return the sections on memories, conversation, board and promises, their label, and the
    messages to answer."""
    agent, thread = ctx.agent, ctx.lease.thread_id
    person_id = planning.person_for(tx, ctx.node)
    recent = messages.lately(tx, ctx.team.id, agent.id, person_id, limit=MAX_MESSAGES)
    asked = messages.to_answer(tx, ctx.node.id)
    before = [message for message in recent if message.reply_id != ctx.node.id]
    known = items.memories(tx, agent.id)
    # What a person says and what the agent knows stands in the prompt in any case.
    label = join(item.label for item in (*before, *known))
    is_labelled = bool(label or join(message.label for message in asked))
    board = [_board_line(tx, node) for node in nodes.latest(tx, ctx.team.id, limit=MAX_NODES)]
    promised = [_promise_line(tx, made) for made in promises.open_of_agent(tx, agent.id)]
    if is_labelled:
        label |= join(line.label for line in (*board, *promised))
    memories = [Line(line, CLEAN) for line in recall.as_lines([i for i in known if not i.label])]
    memories += [Line(recall.as_lines([item])[0], item.label) for item in known if item.label]
    return (
        [
            titled("What you know of the human", _list(memories, thread, is_labelled=True)),
            titled(
                "The conversation so far",
                "\n\n".join(_message_line(m, agent.name, thread) for m in before),
            ),
            titled("The board", _list(board, thread, is_labelled=is_labelled)),
            titled("What you promised", _list(promised, thread, is_labelled=is_labelled)),
        ],
        label,
        asked,
    )


class Line(NamedTuple):
    """A line of a list in the prompt."""

    text: str
    label: Label
    plain: str = ""
    """What a clean reader is shown instead, in the runtime's words."""


def _board_line(tx: Tx, node: WorkNode) -> Line:
    waits = f", {one_line(node.waiting_reason)}" if node.waiting_reason else ""
    line = f"- {texts.title_of(node)} ({node.id}): {node.status}{waits}"
    label = labels.of_board(tx, [node])
    if not label:
        return Line(line, label)
    whose = planning.name_of(tx, node.assignee_id) if node.assignee_id else "nobody yet"
    return Line(line, label, f"- a task of {whose} ({node.id}): {node.status}")


def _promise_line(tx: Tx, promise: Promise) -> Line:
    plain = promises.as_line(tx, promise._replace(what="something that list_triggers shows"))
    return Line(promises.as_line(tx, promise), promise.trigger.label, plain)


def _list(lines: Sequence[Line], thread: str, *, is_labelled: bool) -> str:
    """Return a list of the prompt. A labelled reader sees strangers' words in a fence, a clean one
    the runtime's words instead of them."""
    shown: list[str] = []
    for line in lines:
        if not line.label:
            shown.append(line.text)
        elif is_labelled:
            shown.append(enclose_foreign(line.text, thread=thread, source=str(line.label)))
        else:
            shown.append(line.plain)
    return "\n".join(shown)


def _message_line(message: Message, name: str, thread: str) -> str:
    """Return an earlier message. Only the runtime begins a line with a time in brackets: what an
    agent wrote is indented, and fenced if it holds strangers' words."""
    at = f"[{message.created_at:%d %b %H:%M}]"
    kind = "" if message.kind in ("message", "nudge") else f" ({message.kind})"
    if is_person(message.sender):
        words = quotations.enclose_quoted(message.text, thread=thread, longest=MESSAGE_CHARACTERS)
        return f"{at} Human{kind}: {words}"
    asks_for = "" if message.call is None else f" {message.call.name}({message.call.arguments})"
    text = texts.truncate(message.text + asks_for, MESSAGE_CHARACTERS)
    text = "\n    ".join(text.splitlines())
    if message.label:
        text = "\n" + enclose_foreign(text, thread=thread, source=str(message.label))
    return f"{at} {name}{kind}: {text}"


async def answer(steps: Steps, ctx: RunContext) -> Outcome:
    """Ask the model until it has an answer, and send it; without a model, send a plain notice."""
    try:
        text = await _write_answer(steps, ctx)
    except DailyLimitReached as error:
        await ctx.store.write(daily_limit.ask_once, ctx.lease, limit_usd=error.limit_usd)
        return await _send(ctx, OUT_OF_MONEY)
    except ModelError as error:
        # The person must get an answer whatever becomes of the model; their request becomes work.
        return await acknowledge(ctx, error)
    await steps.caller.write_deferred(ctx)
    return await _send(ctx, text)


async def acknowledge(ctx: RunContext, why: Exception) -> Outcome:
    """Tell the person that the model failed; their request is queued as work all the same."""
    return await _send(ctx, WITHOUT_A_MODEL.format(reason=why))


async def _send(ctx: RunContext, text: str) -> Outcome:
    """Send the answer, make the work if it is wanted, and end the node: one transaction."""
    text, manifest = await _publish_if_long(ctx, text)
    outcome = Finished(text, StopReason.FINISHED, manifest)
    decision = _work_decision(ctx.transcript)
    if decision == "not_needed" and promises_work(text):
        decision = None  # the person was promised something, so there is work
    await ctx.store.write(conversation.end_reply, ctx.lease, outcome, text=text, work=decision)
    return outcome


async def _publish_if_long(ctx: RunContext, text: str) -> tuple[str, dict[str, str]]:
    """Return the text that a message can hold; a longer answer is published as a file."""
    if len(text) <= texts.MESSAGE:
        return text, {}
    folder = ctx.home.team(ctx.team.id).node(ctx.node.id)
    manifest: dict[str, str] = {}
    await asyncio.to_thread(folder.prepare, ctx.node, ctx.node.refs)
    name = await keep_result(ctx, text)
    # Unpublished, the file stays in scratch/, and the shortened answer says so.
    with contextlib.suppress(Refused):
        manifest = await asyncio.to_thread(folder.publish, texts.fit_message(text))
    return shown_result(ctx, text, name, manifest), manifest


async def _write_answer(steps: Steps, ctx: RunContext) -> str:
    """Return the last text of the model, after it has looked up what it wants to know."""
    # After a crash: calls of the last reply that have no answer.
    await steps.act(ctx, ctx.transcript.open_calls())
    last = ctx.transcript.last_reply
    while last is None or not _is_answer(ctx.transcript, last) or _lacks_promise(ctx, last):
        nudge = _nudges(ctx, last)
        if ctx.consumed.turns >= ctx.node.budget.turns or await steps.catch_up(
            ctx, *nudge, deliver_mail=False
        ):
            break
        last = await steps.think(ctx, "reply")
        await steps.act(ctx, last.calls)
    texts = [t.text for t in ctx.transcript.turns if t.role == "assistant" and t.text.strip()]
    return texts[-1] if texts else WITHOUT_A_MODEL.format(reason="nothing was said.")


def _nudges(ctx: RunContext, last: Turn | None) -> list[SystemNote]:
    """Return what the model is told before it is asked again."""
    if last is None:
        return []
    if not last.calls and (last.is_cut or not last.text.strip()):
        return [SystemNote(f"nudge:{last.seq}", CUT_OFF if last.is_cut else NOTHING_SAID)]
    return [SystemNote(ASKED_TO_PROMISE, PROMISE_IT)] if _lacks_promise(ctx, last) else []


def _lacks_promise(ctx: RunContext, reply: Turn) -> bool:
    """Whether the reply promises something by a time, no promise was made, and the model was not
    told so yet. It is told once."""
    if ctx.transcript.has(ASKED_TO_PROMISE) or not promises_by_a_time(reply.text):
        return False
    made = (call.name for turn in ctx.transcript.turns for call in turn.calls)
    return scheduling.promise.name not in made


def _is_answer(transcript: Transcript, reply: Turn) -> bool:
    """Whether the reply has text, and no call in it failed or looked up something to tell."""
    failed = _failed_calls(transcript)
    return (
        bool(reply.text.strip())
        and not reply.is_cut
        and not any(call.id in failed or _properties(call).looks_up for call in reply.calls)
    )


def _work_decision(transcript: Transcript) -> WorkDecision | None:
    """Return what the model decided about work: a start counts over all, else the last call."""
    failed = _failed_calls(transcript)
    decisions: list[WorkDecision] = [
        decision
        for turn in transcript.turns
        for call in turn.calls
        if call.id not in failed
        if (decision := _properties(call).decides_work) is not None
    ]
    return "started" if "started" in decisions else decisions[-1] if decisions else None


def _properties(call: ToolCall) -> ToolProperties:
    tool = FOREGROUND.get(call.name)
    return ToolProperties() if tool is None else tool.properties


def _failed_calls(transcript: Transcript) -> set[str | None]:
    return {t.ref for t in transcript.turns if t.role == "tool" and t.failed}
