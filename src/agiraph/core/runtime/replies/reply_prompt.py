"""Reply prompt: what a reply to a person is shown, within a fixed size.

Stable parts come first, for the vendor's cache. Each part has a share of the room, so that fifty
open tasks do not push out the conversation. What is left out, the reply's tools can read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from agiraph.core.domain.chat import ToolSpec
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import Line, enclose_retold, newest, one_line, show, size_of
from agiraph.core.domain.text.language import guess
from agiraph.core.domain.times import moments
from agiraph.core.domain.value import dataclass
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.prompts.prompt import Opening, ShownFiles, titled
from agiraph.core.services.board import planning, texts
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.lifecycle import work_state
from agiraph.core.services.lifecycle.work_state import History, WorkState
from agiraph.core.services.mail import edits
from agiraph.core.store import messages, teams
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx

MAX_TOKENS = 8000
"""Tokens of a reply's first request besides the messages that it answers; with a small window, a
quarter of it."""
LEAST_BYTES = 2400
"""Bytes for all that is not fixed, however small the window."""
MESSAGE_CHARACTERS = 2000
"""Characters that the prompt shows of each message."""
OLDER_CHARACTERS = 160
"""Characters of each older message that is in no summary yet."""
PLAN_BYTES = 1600
IDENTITY_BYTES = 4000
SHARES = {
    "about_them": 0.15,
    "summary": 0.1,
    "conversation": 0.35,
    "now": 0.25,
    "own": 0.25,
    "lately": 0.15,
}
"""The most that each part may take of the room; what is left over goes to the later ones."""
MORE = "… and {left} more: check_board lists them"


class State(NamedTuple):
    """The rows that a reply's prompt is made of, read in one transaction."""

    asked: list[Message]
    edits: list[str]
    """For each of them what it takes the place of; empty for most."""
    history: History
    about_them: list[Line]
    """What the agent knows of the person."""
    work: WorkState
    zone: str
    """The person's time zone, in which all times are shown."""


async def opening(ctx: RunContext, tools: Sequence[ToolSpec], *, is_lean: bool) -> Opening:
    """Return the prompt of a reply: rules, what is known of the person, how the work stands,
    and the conversation."""
    state = await ctx.store.read(_state, ctx)
    files = await _files(ctx)
    fixed = _fixed(ctx, files, is_lean=is_lean)
    room = _room(ctx, tools) - sum(size_of(part) + 2 for part in fixed)
    parts, label = _parts(ctx, state, files, max(room, LEAST_BYTES))
    thread = ctx.lease.thread_id
    asked = zip(state.asked, state.edits, strict=True)
    question = "\n\n".join(_asked(message, thread) + edited for message, edited in asked)
    return Opening(
        "\n\n".join(part for part in (*fixed, *parts, _language(state)) if part.strip()),
        question,
        tuple(a for message in state.asked for a in message.attachments),
        label | files.label,
        is_lean,
        summarise_upto=state.history.older[-1].id if state.history.is_full else "",
    )


def _room(ctx: RunContext, tools: Sequence[ToolSpec]) -> int:
    """Return the bytes that the prompt may have: a token is counted as four of them."""
    tokens = min(MAX_TOKENS, ctx.window // 4) if ctx.window else MAX_TOKENS
    described = sum(len(t.description) + len(orjson.dumps(t.schema)) + 80 for t in tools)
    return tokens * 4 - described


async def _files(ctx: RunContext) -> ShownFiles:
    """Return the files of the team, with the labels of those that a reply shows."""
    labelled = await ctx.store.read(file_labels.of, ctx.team.id, [_identity(ctx), "PLAN.md"])
    folder = ctx.home.team(ctx.team.id)
    return ShownFiles(folder, ctx.lease.thread_id, labelled, ctx.team.trust)


def _identity(ctx: RunContext) -> str:
    return f"agents/{ctx.agent.name}/IDENTITY.md"


def _fixed(ctx: RunContext, files: ShownFiles, *, is_lean: bool) -> list[str]:
    """Return the parts that rarely change."""
    return [
        "" if is_lean else files.note("SOUL.md", IDENTITY_BYTES),
        f"You are {ctx.agent.name}.",
        files.note(_identity(ctx), 400 if is_lean else IDENTITY_BYTES),
        prompt("reply_lean" if is_lean else "reply"),
        f"# The team's goal\n\n{texts.truncate(ctx.team.goal, 400 if is_lean else 4000)}",
    ]


def _state(tx: Tx, ctx: RunContext) -> State:
    asked = messages.to_answer(tx, ctx.node.id)
    person_id = planning.person_for(tx, ctx.node)
    history = work_state.history(tx, ctx.agent, person_id, without=ctx.node.id)
    # Since the last reply, not since the last message: results are sent to the person unasked.
    replies = [m for m in history.newest if not is_person(m.sender) and m.in_reply_to is not None]
    zone = teams.zone_of(tx, person_id)
    return State(
        asked=asked,
        edits=[edits.in_reply(tx, message) for message in asked],
        history=history._replace(
            older=in_zone(history.older, zone), newest=in_zone(history.newest, zone)
        ),
        about_them=[
            line
            for verbs in find_verbs()
            for line in verbs.about_person(tx, ctx.agent, person_id, asked)
        ],
        work=work_state.of_team(tx, ctx.agent, since=replies[-1].created_at if replies else None),
        zone=zone,
    )


def in_zone(said: Sequence[Message], zone: str) -> list[Message]:
    """Return messages with their times as the clocks in a zone show them."""
    return [replace(m, created_at=moments.local(m.created_at, zone)) for m in said]


def _parts(ctx: RunContext, state: State, files: ShownFiles, room: int) -> tuple[list[str], Label]:
    """Return the parts about the person, the work and the conversation, and the label of the
    untrusted text in them.

    What a person says and what the agent knows of them stands in the prompt in any case. If that
    is clean, and so is what they ask now, untrusted text about the work is left out: the reply
    stays clean, and a tool shows that text. An agent that was hired for one task is shown its
    result in any case: there is nothing else that a person could ask it about.
    """
    thread, history = ctx.lease.thread_id, state.history
    said = [_message_line(m, ctx.agent.name, thread) for m in history.newest]
    spoken = newest(said, room=int(room * SHARES["conversation"]))
    most = int(room * SHARES["about_them"])
    known = show(state.about_them, thread=thread, is_labelled=True, room=most)
    before = _earlier(history, thread, int(room * SHARES["summary"]))
    label = known.label | before.label | join(line.label for line in spoken)
    own = CLEAN if ctx.agent.persistent else join(line.label for line in state.work.own)
    files.is_labelled = bool(label or own or join(message.label for message in state.asked))
    left = room - sum(map(size_of, (known.text, before.text, *(line.text for line in spoken))))
    work, now = _Work(thread, files, room, left, label), moments.local(ctx.clock.now(), state.zone)
    return [
        titled("What you know of the human", known.text),
        *work.parts(state.work),
        f"Today is {now:%A, %d %B %Y, %H:%M} ({now.tzinfo}).",
        titled("Earlier in this conversation", before.text),
        titled("The conversation so far", "\n\n".join(line.text for line in spoken)),
    ], work.label


@dataclass(slots=True)
class _Work:
    """The parts about the work, made one after the other from the room that is left."""

    thread: str
    files: ShownFiles
    room: int
    left: int
    label: Label

    def parts(self, work: WorkState) -> list[str]:
        # What waits for the person first: it must not be pushed out by long lists.
        asked = self._section(work.asked, 0.1, "… and {left} more in their inbox")
        now = self._section(work.now, SHARES["now"], MORE)
        # The agent's own results first: they are what the person asks about most.
        own = self._section(work.own, SHARES["own"], MORE)
        lately = self._section(work.lately, SHARES["lately"], MORE)
        ahead = self._section(work.ahead, 0.08, "… and {left} more")
        plan = self.files.note("PLAN.md", min(PLAN_BYTES, self.left)) if self.left > 200 else ""
        return [
            titled("What is under way now", now or "Nothing."),
            titled("What you did last", own),
            titled("What has ended lately", lately),
            titled("PLAN.md", plan),
            titled("What they have been asked and not answered", asked),
            titled("What you promised, and what comes next", ahead),
        ]

    def _section(self, lines: Sequence[Line], share: float, more: str) -> str:
        room = min(int(self.room * share), self.left)
        is_labelled = self.files.is_labelled
        shown = show(lines, thread=self.thread, is_labelled=is_labelled, room=room, more=more)
        self.left -= size_of(shown.text)
        self.label |= shown.label
        return shown.text


def _earlier(history: History, thread: str, room: int) -> Line:
    """Return the summary of the older conversation, and the messages that are in no summary yet."""
    told: list[str] = []
    label = CLEAN
    summary = history.summary
    if summary is not None and summary.text:
        text = texts.truncate(summary.text, max(room - 200, 200))
        label |= summary.label
        told.append(own_words(text, summary.label, thread))
    older = [_short_line(message, thread) for message in history.older]
    kept = newest(older, room=max(room - sum(map(size_of, told)), 0))
    label |= join(line.label for line in kept)
    return Line("\n".join([*told, *(line.text for line in kept)]), label)


def _short_line(message: Message, thread: str) -> Line:
    at = f"[{message.created_at:%d %b %H:%M}]"
    text = texts.truncate(one_line(message.full_text), OLDER_CHARACTERS)
    if not is_person(message.sender):
        return Line(f"{at} You: {own_words(text, message.label, thread)}", message.label)
    if message.label:  # only what they quote is not theirs
        text = quotations.enclose_quoted(message.text, thread=thread, longest=OLDER_CHARACTERS)
    return Line(f"{at} Human: {text}", message.label)


def own_words(text: str, label: Label, thread: str) -> str:
    """Return words that the agent itself wrote earlier, inside a fence if it had read untrusted
    text by then: they may repeat it."""
    if not label:
        return text
    return enclose_retold(text, thread=thread, author="your own words", source=str(label))


def _message_line(message: Message, name: str, thread: str) -> Line:
    """Return an earlier message. Only the runtime begins a line with a time in brackets: what an
    agent wrote is indented, and fenced if it holds untrusted text."""
    at = f"[{message.created_at:%d %b %H:%M}]"
    kind = "" if message.kind in ("message", "nudge") else f" ({message.kind})"
    if is_person(message.sender):
        kind = kind if message.edited_by is None else " (edited later)"
        said = quotations.enclose_quoted(message.text, thread=thread, longest=MESSAGE_CHARACTERS)
        return Line(f"{at} Human{kind}: {said}", message.label)
    asks_for = "" if message.call is None else f" {message.call.name}({message.call.arguments})"
    most = texts.RESULT_SHOWN if message.kind in ("report", "result") else MESSAGE_CHARACTERS
    text = texts.truncate(message.full_text + asks_for, most)
    text = "\n    ".join(text.splitlines())
    if message.label:
        text = "\n" + own_words(text, message.label, thread)
    whole = "" if len(message.full_text) <= most else f' (all of it: read_report("{message.id}"))'
    return Line(f"{at} {name}{kind}: {text}{whole}", message.label)


def _asked(message: Message, thread: str) -> str:
    """Return a message that is to be answered; the runtime says if it has settled a question."""
    said = quotations.enclose_quoted(message.text, thread=thread)
    if message.in_reply_to is None:
        return said
    settled = f"[Runtime] This was taken as the answer to {message.in_reply_to}; the work that "
    return f"{said}\n\n{settled}asked has it and goes on. Acknowledge it in a sentence."


def _language(state: State) -> str:
    """Return in which language to answer: the one that the person wished for, else that of their
    last message."""
    language = guess(state.asked[-1].text) if state.asked else None
    last = "the language of the person's last message"
    which = f"{language}, {last}" if language else last
    wish = "; a wish of theirs that you know goes before it" if state.about_them else ""
    return f"Answer in {which}{wish}."
