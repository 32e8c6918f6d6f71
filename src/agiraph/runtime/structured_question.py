"""Asking: one structured question in a thread, and reading what comes back, however it is put.

What was asked and answered stands in the thread, so asking again after a crash goes on there.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agiraph.domain.chat import THINKING, Transcript, Turn
from agiraph.domain.errors import ContextExceeded, ModelGarbled, ModelRefused
from agiraph.domain.work import StopReason
from agiraph.run_context import RunContext
from agiraph.runtime.calls import Halted
from agiraph.services.lifecycle import journal
from agiraph.services.lifecycle.journal import Notice

if TYPE_CHECKING:
    from agiraph.runtime.loop import Loop

T = TypeVar("T")

AGAIN = (
    "[Runtime] That could not be read as what was asked for. Answer again with the JSON object "
    "alone: no other words, no code fence."
)
PLACES = 50
"""Where in a text an object is looked for, at most."""


class Unaffordable(Exception):
    """The money for the question is spent; it was not asked."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    name: str
    """What the call is paid as, and how the thread knows that it was asked."""
    text: str
    schema: dict[str, Any]
    read: Callable[[Any], T | None]
    """What the JSON value means; None if it is not what was asked for."""
    shorter: str = ""
    """The same with less around it, if the thread turns out too long for the model."""


async def ask(loop: "Loop", ctx: RunContext, question: Question[T]) -> T | None:
    """The answer; None if it cannot be read even when asked for again.

    The second time without a schema: a server that knows none may be the reason.
    """
    short, again = f"{question.name}:short", f"{question.name}:again"
    steps = (question.name, short, again)
    asked = [turn.ref for turn in ctx.transcript.turns if turn.ref in steps]
    step = asked[-1] if asked else None
    if step is None:
        step = question.name
        await _put(loop, ctx, Notice(step, question.text))
    while True:
        following, failure = again, None
        try:
            schema = None if step == again else question.schema
            answer = _answer_to(ctx.transcript, step)
            answer = answer or await _think(loop, ctx, question.name, schema)
            if (read := question.read(value_in(answer.text))) is not None:
                return read
        except ContextExceeded as error:
            following, failure = short, error
        except (ModelGarbled, ModelRefused) as error:
            failure = error
        if ctx.transcript.has(following) or (following == short and not question.shorter):
            if failure is not None:
                raise failure
            return None
        step = following
        if step == short:
            cut = await ctx.store.write(journal.compact, ctx.lease, ref=step, text=question.shorter)
            ctx.add_turns(cut)
        else:
            await _put(loop, ctx, Notice(step, AGAIN))


def _answer_to(transcript: Transcript, ref: str) -> Turn | None:
    """What was said right after these words, if anything was."""
    spoken = [turn for turn in transcript.turns if turn.role != "intent"]
    place = next(i for i in reversed(range(len(spoken))) if spoken[i].ref == ref)
    following = spoken[place + 1] if place + 1 < len(spoken) else None
    return following if following is not None and following.role == "assistant" else None


async def _put(loop: "Loop", ctx: RunContext, notice: Notice) -> None:
    if reason := await loop.catch_up(ctx, notice, hear=False):
        raise Unaffordable(reason)


async def _think(
    loop: "Loop", ctx: RunContext, purpose: str, schema: dict[str, Any] | None
) -> Turn:
    last = ctx.transcript.turns[-1]
    if (last.role, last.ref) != ("intent", THINKING):  # what was held for it is lost: hold anew
        heard = await ctx.store.write(
            journal.catch_up,
            ctx.lease,
            hear=False,
            reservation=loop.budget.reservation(ctx),
            paid_from=ctx.envelopes,
        )
        if heard.halt is not None:
            raise Halted(heard.halt)
        if heard.spent is not None:
            raise Unaffordable(heard.spent)
        ctx.add_turns(*heard.turns)
    return await loop.think(ctx, purpose, may_call=False, schema=schema)


def value_in(text: str) -> Any:
    """The JSON value that a text is or holds, in a fence or among other words; None without one."""
    decoder = json.JSONDecoder()
    stripped = text.strip()
    try:
        return decoder.decode(stripped)
    except (json.JSONDecodeError, RecursionError):
        pass
    place = -1
    for _ in range(PLACES):
        place = min(
            (p for p in (text.find(sign, place + 1) for sign in "{[") if p >= 0), default=-1
        )
        if place < 0:
            return None
        try:
            value, _ = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            continue
        if value:
            return value
    return None


def number(value: Any) -> float | None:
    """A number from 0 to 1, also if it was written as text; None if it is none."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return min(max(found, 0.0), 1.0) if found == found else None


def fields(value: Any) -> dict[str, Any]:
    """The fields of an object; none of anything else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
