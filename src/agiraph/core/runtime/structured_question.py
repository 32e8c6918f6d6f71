"""Structured question: asks the model one question in a thread and parses the JSON answer.

Question and answer stand in the thread, so a run that starts again after a crash continues there.
"""

import json
import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from agiraph.core.domain.chat import THINKING, Transcript, Turn
from agiraph.core.domain.errors import ContextExceeded, ModelGarbled, ModelRefused
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.lifecycle import journal
from agiraph.core.services.lifecycle.journal import SystemNote

T = TypeVar("T")

AGAIN = (
    "[Runtime] That could not be read as what was asked for. Answer again with the JSON object "
    "alone: no other words, no code fence."
)
MAX_STARTS = 50
"""Opening brackets of a text at which a JSON value is tried."""


class Unaffordable(Exception):
    """The budget has too little left for the question, so it was not asked."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    name: str
    """The purpose the call is charged under, and the `ref` of the question in the thread."""
    text: str
    parse: Callable[[Any], T | None]
    """Turns the JSON value into the answer; returns None if it has another form."""
    schema: dict[str, Any] | None = None
    """What the model's server holds it to; a reply of another form is asked for again by it."""
    is_asked_once: bool = False
    """Whether an answer that cannot be read is not asked for again."""
    shorter: str = ""
    """A shorter form of the question, for a thread that is too long for the model."""


async def ask(steps: Steps, ctx: RunContext, question: Question[T]) -> T | None:
    """Return the parsed answer; None if the model gave no readable one.

    There are up to three attempts, each with its own `ref` in the thread: the question, its
    shorter form if the thread is too long, and a last one without a schema, because some servers
    fail on schemas they do not support.
    """
    shorter, again = f"{question.name}:short", f"{question.name}:again"
    attempts = (question.name, shorter, again)
    made = [turn.key for turn in ctx.transcript.turns if turn.key in attempts]
    attempt = made[-1] if made else None
    if attempt is None:
        attempt = question.name
        await _add_note(steps, ctx, SystemNote(attempt, question.text))
    while True:
        following, failure = again, None
        try:
            schema = None if attempt == again else question.schema
            # After a crash the thread may hold the answer already; it was paid for.
            answer = _answer_to(ctx.transcript, attempt)
            answer = answer or await _think(steps, ctx, question.name, schema)
            parsed = question.parse(value_in(answer.text))
            if parsed is not None or question.is_asked_once:
                return parsed
        except ContextExceeded as error:
            following, failure = shorter, error
        except (ModelGarbled, ModelRefused) as error:
            if question.is_asked_once:
                return None
            failure = error
        if ctx.transcript.has(following) or (following == shorter and not question.shorter):
            if failure is not None:
                raise failure
            return None
        attempt = following
        if attempt == shorter:
            text = question.shorter
            ctx.add_turns(await ctx.store.write(journal.compact, ctx.lease, ref=attempt, text=text))
        else:
            await _add_note(steps, ctx, SystemNote(attempt, AGAIN))


async def ask_text(steps: Steps, ctx: RunContext, name: str, text: str) -> Turn:
    """Return the model's answer in words, to a question that the thread gets once.

    `name` is the `ref` of the question in the thread and the purpose that the call is charged
    under. Raise `Unaffordable` if the budget has too little left.
    """
    if not ctx.transcript.has(name):
        await _add_note(steps, ctx, SystemNote(name, text))
    answer = _answer_to(ctx.transcript, name)
    return answer or await _think(steps, ctx, name.partition(":")[0], None)


def _answer_to(transcript: Transcript, ref: str) -> Turn | None:
    """Return the reply right after the turn with this ref; None if there is none yet."""
    spoken = [turn for turn in transcript.turns if turn.role != "intent"]
    place = next(i for i in reversed(range(len(spoken))) if spoken[i].key == ref)
    following = spoken[place + 1] if place + 1 < len(spoken) else None
    return following if following is not None and following.role == "assistant" else None


async def _add_note(steps: Steps, ctx: RunContext, note: SystemNote) -> None:
    if reason := await steps.catch_up(ctx, note, deliver_mail=False):
        raise Unaffordable(reason)


async def _think(
    steps: Steps, ctx: RunContext, purpose: str, schema: dict[str, Any] | None
) -> Turn:
    last = ctx.transcript.turns[-1]
    # Without an intent at the end, the reservation was charged as lost after a crash or an error.
    is_reserved = (last.role, last.ref) == ("intent", THINKING)
    if not is_reserved and (reason := await steps.reserve(ctx)):
        raise Unaffordable(reason)
    return await steps.think(ctx, purpose, may_call=False, schema=schema)


def value_in(text: str) -> Any:
    """Return the JSON value that the text is or contains (in a code fence too); None without."""
    decoder = json.JSONDecoder()
    stripped = text.strip()
    try:
        return decoder.decode(stripped)
    except (json.JSONDecodeError, RecursionError):
        pass
    start = -1
    for _ in range(MAX_STARTS):
        starts = (text.find(bracket, start + 1) for bracket in "{[")
        start = min((position for position in starts if position >= 0), default=-1)
        if start < 0:
            return None
        try:
            # Brackets in prose, such as `{name}`, begin no JSON; an empty value does not count.
            value, _ = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            continue
        if value:
            return value
    return None


def number(value: Any) -> float | None:
    """Return the value as a number, limited to 0..1; None if it is not a number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(found) else min(max(found, 0.0), 1.0)


def fields(value: Any) -> dict[str, Any]:
    """Return the fields of a JSON object; an empty dict for any other value."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
