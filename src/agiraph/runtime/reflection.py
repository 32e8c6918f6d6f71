"""Reflection: what was learned from work that is done, and whether the person should hear of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from agiraph.domain.chat import Thread, Transcript
from agiraph.domain.errors import ModelError, ModelUnavailable
from agiraph.domain.ids import NodeId
from agiraph.domain.knowledge import InsightType
from agiraph.domain.messages import Message
from agiraph.domain.outcomes import Failed, Finished, Outcome
from agiraph.domain.work import StopReason, WorkNode
from agiraph.prompts import prompt
from agiraph.runtime.compaction import digest
from agiraph.runtime.prompt import Opening
from agiraph.runtime.structured_question import Question, Unaffordable, ask, fields, number
from agiraph.services.board import notices
from agiraph.services.knowledge import reflection
from agiraph.services.knowledge.reflection import LearnedInsight
from agiraph.services.lifecycle import briefings
from agiraph.services.lifecycle.briefings import News, Verdict
from agiraph.store import threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools.context import RunContext
from agiraph.tools.toolsets import ROLES

if TYPE_CHECKING:
    from agiraph.runtime.loop import Loop

MOST_INSIGHTS = 10
LONGEST_INSIGHT = 1000
EACH = 2000
"""How much of one answer the record of a thread keeps, in characters."""
SHOWN = 5
"""Earlier briefings that a new one is asked to differ from."""
TOLD = 400

_ASK = """{record}

[Runtime] What of this is worth keeping for later work? Answer with one JSON object:
{{"insights": [{{"type": "fact" | "technique" | "pattern" | "lesson", "content": "…", "confidence":
0 to 1, "work": the number of the piece of work it comes from}}]}}, with an empty list if there is
nothing. At most {most}."""
_TYPES: tuple[InsightType, ...] = get_args(InsightType)
_INSIGHT = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(_TYPES)},
        "content": {"type": "string"},
        "confidence": {"type": "number"},
        "work": {"type": "integer"},
    },
    "required": ["type", "content", "confidence", "work"],
    "additionalProperties": False,
}
INSIGHTS = {
    "type": "object",
    "properties": {"insights": {"type": "array", "items": _INSIGHT}},
    "required": ["insights"],
    "additionalProperties": False,
}
VERDICT = {
    "type": "object",
    "properties": {
        "score": {"type": "number"},
        "title": {"type": "string"},
        "text": {"type": "string"},
    },
    "required": ["score", "title", "text"],
    "additionalProperties": False,
}


class Ended(NamedTuple):
    """A piece of work that is looked back on."""

    thread: Thread
    node: WorkNode
    transcript: Transcript


async def opening(ctx: RunContext) -> Opening:
    """What an agent is told before it looks back: who it is, and how to judge."""
    system = [
        f"You are {ctx.agent.name}.",
        prompt("harvest"),
        f"# The team's goal\n\n{ctx.team.goal}",
        f"Today is {ctx.clock.now():%A, %d %B %Y} (UTC).",
    ]
    return Opening("\n\n".join(system), ctx.node.task)


async def look_back(loop: "Loop", ctx: RunContext) -> Outcome:
    """Keep what was learned, then brief if there is something to say. Nobody waits for it.

    A model that cannot be reached is waited for; whatever else goes wrong ends it quietly.
    """
    try:
        await _harvest(loop, ctx)
        return await _brief(loop, ctx)
    except ModelUnavailable:
        raise
    except ModelError as error:
        return Failed(StopReason.NO_RESULT, f"There was no looking back: {error}")
    except Unaffordable as error:
        return Failed(error.reason, "There was no money left to look back.")


async def _harvest(loop: "Loop", ctx: RunContext) -> None:
    ended = await ctx.store.read(_ended, ctx.node.id)
    if all(work.thread.harvested_at is not None for work in ended):
        return
    room = loop.compaction.window  # a quarter of the window, at four characters a token
    question = Question(
        name="harvest",
        text=_ASK.format(record=record(ended, room), most=MOST_INSIGHTS),
        shorter=_ASK.format(record=_digests(ended, room // 4), most=MOST_INSIGHTS),
        schema=INSIGHTS,
        read=read_insights,
    )
    learned = await ask(loop, ctx, question)
    await ctx.store.write(reflection.store_insights, ctx.lease, learned or ())


def _ended(tx: Tx, node_id: NodeId) -> list[Ended]:
    return [
        Ended(thread, NODES.get(tx, thread.node_id), Transcript(threads.turns(tx, thread.id)))
        for thread in threads.of_reflection(tx, node_id)
        if thread.node_id is not None
    ]


def record(ended: Sequence[Ended], room: int) -> str:
    """What was done, in full if there is room for it, else in few words."""
    whole = "\n\n".join(_framed(i, work, _said(work.transcript)) for i, work in enumerate(ended, 1))
    return whole if len(whole) <= room else _digests(ended, room)


def _digests(ended: Sequence[Ended], room: int) -> str:
    share = room // max(len(ended), 1)
    return "\n\n".join(
        _framed(i, work, digest(work.transcript, share)) for i, work in enumerate(ended, 1)
    )


def _framed(number: int, work: Ended, text: str) -> str:
    title = f"{_cut(notices.title_of(work.node), 80)} ({work.node.status})"
    return f"--- WORK {number}: {title} ---\n{text}\n--- END OF WORK {number} ---"


def _said(transcript: Transcript) -> str:
    lines: list[str] = []
    for turn in transcript.spoken():
        if turn.text:
            who = "You" if turn.role == "assistant" else "Answer" if turn.role == "tool" else "Told"
            lines.append(f"{who}: {_cut(turn.text, EACH)}")
        lines += [f"Call: {call.name}({_cut(str(call.arguments), EACH)})" for call in turn.calls]
    return "\n".join(lines)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "…"


def read_insights(value: Any) -> list[LearnedInsight] | None:
    """The insights of an answer; what is not one is left out."""
    listed: Any = fields(value).get("insights", value)
    if not isinstance(listed, list):
        return None
    found: list[LearnedInsight] = []
    for entry in map(fields, cast(list[Any], listed)):
        type, content = str(entry.get("type", "")).strip().lower(), entry.get("content")
        if type not in _TYPES or not isinstance(content, str) or not content.strip():
            continue
        work = entry.get("work")
        found.append(
            LearnedInsight(
                type=type,
                content=_cut(content.strip(), LONGEST_INSIGHT),
                confidence=number(entry.get("confidence")),
                work=work if isinstance(work, int) else 0,
            )
        )
    return found[:MOST_INSIGHTS]


async def _brief(loop: "Loop", ctx: RunContext) -> Outcome:
    """Tell the person, if the role may and it is worth their time; silence otherwise."""
    if not ROLES.get(ctx.agent.role, ROLES["worker"]).may_brief:
        return Finished("Looked back.", StopReason.ANSWERED)
    done = Finished("Looked back.", StopReason.FINISHED)  # its end is committed with the decision
    news = await ctx.store.read(briefings.news, ctx.node.id)
    if news is None:
        await ctx.store.write(briefings.pass_over, ctx.lease, reason="already delivered")
        return done
    question = Question(
        name="briefing",
        text=prompt("briefing").format(told=_told(news)),
        schema=VERDICT,
        read=read_verdict,
    )
    verdict = await ask(loop, ctx, question)
    if verdict is None:
        await ctx.store.write(briefings.pass_over, ctx.lease, reason="no readable answer")
    else:
        await ctx.store.write(briefings.decide, ctx.lease, verdict)
    return done


def _told(news: News) -> str:
    if not news.told:
        return "So far you have told them nothing unasked."
    return "Already told:\n" + "\n".join(_line(message) for message in news.told[:SHOWN])


def _line(message: Message) -> str:
    rated = {"up": " (they liked it)", "down": " (they did not want it)"}
    thumb = rated.get(message.rating or "", "")
    return f"- {message.created_at:%d %b} {message.title}{thumb}: {_cut(message.text, TOLD)}"


def read_verdict(value: Any) -> Verdict | None:
    given = fields(value)
    score = number(given.get("score"))
    if score is None:
        return None
    title, text = given.get("title"), given.get("text")
    return Verdict(
        score=score,
        title=title if isinstance(title, str) else "",
        text=text if isinstance(text, str) else "",
    )
