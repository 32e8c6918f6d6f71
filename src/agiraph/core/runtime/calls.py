"""Calls: makes one tool call so that a crash at any point of it is resolved, reported or repeated.

The tool's effect decides. A `transaction` commits with its answer. A `repeatable` call is made
again after a crash, but not after three (`Steps.recover`). A `once` call writes its intent first;
if the thread holds an intent without an answer, the tool finds out what happened (`resolve`), or
the model is told that nobody knows.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from dataclasses import field, replace
from typing import Any

from agiraph.core.domain.chat import LONGEST_SENT, ToolCall
from agiraph.core.domain.errors import AgiraphError, AnswerFirst, Misconfigured, Refused, SentBack
from agiraph.core.domain.outcomes import Answer, Done, InTransaction, Pending
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.labels import UNKNOWN as UNKNOWN_SOURCE
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import RESULT_FILE, Halt
from agiraph.core.home.safe_folder import Folder
from agiraph.core.policies import batches
from agiraph.core.policies.batches import Readings, failed_basis
from agiraph.core.policies.budget import BudgetPolicy
from agiraph.core.policies.permission import APPROVED, ASKED, PermissionPolicy, Ruling
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts, unfinished
from agiraph.core.services.lifecycle import journal
from agiraph.core.store.rows import to_text
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import CUT_OFF, Tool
from agiraph.core.tools.calls.call_reading import no_such_tool

ANSWER_CHARACTERS = 20_000
"""Longer answers are shortened: each later model call pays for the whole thread again."""
HEAD_CHARACTERS, TAIL_CHARACTERS = 8_000, 4_000
"""Characters of a long answer that stay in the thread, from its beginning and from its end."""


async def spill(ctx: RunContext, call: ToolCall, answer: Done) -> Done:
    """Return a long answer as its beginning, its end and the name of a file with all of it."""
    # A model or a vendor chose the call's id, so it may contain anything, such as a slash.
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in call.id)[:80]
    desk = f"agents/{ctx.agent.name}" if ctx.node.kind.sees_team else "scratch"
    path = f"{desk}/results/{ctx.lease.thread_id}-{name}.txt"

    def keep() -> None:
        folder, rest = ctx.scope.resolve(path, "w")
        with folder:
            folder.write(rest, answer.text.encode(errors="replace"))

    if answer.label:
        # Before the file: a crash in between must not leave untrusted text without a label.
        data = answer.text.encode(errors="replace")
        await ctx.store.write(file_labels.put, ctx.team.id, path, data, label=answer.label)
    await asyncio.to_thread(keep)
    head, tail = answer.text[:HEAD_CHARACTERS], answer.text[-TAIL_CHARACTERS:]
    left_out = len(answer.text) - HEAD_CHARACTERS - TAIL_CHARACTERS
    text = (
        f"{head}\n… {left_out:,} characters are left out here; the whole answer is "
        f"in {path}: read it in pages with read_file …\n{tail}"
    )
    return replace(answer, text=text)


async def keep_result(ctx: RunContext, text: str) -> str | None:
    """Write a result that is too long for another agent's thread to scratch/, to be published.

    Return the file's name; None if the text is short or could not be written.
    """
    if len(text) <= texts.LONGEST:
        return None
    try:
        return await asyncio.to_thread(_keep, ctx, to_text(text).encode())
    except Refused:
        return None


def _keep(ctx: RunContext, data: bytes) -> str:
    folder, _ = ctx.scope.resolve("scratch", "w")
    stem, _, kind = RESULT_FILE.partition(".")
    with folder:
        number, name = 1, RESULT_FILE
        while folder.exists(name) and not _holds(folder, name, data):
            number, name = number + 1, f"{stem}-{number + 1}.{kind}"
        if not folder.exists(name):  # after a crash it is there already
            folder.write(name, data)
    return name


def _holds(folder: Folder, name: str, data: bytes) -> bool:
    try:
        return folder.read(name, limit=len(data) + 1) == data
    except Refused:
        return False  # a folder, or anything else that is not a regular file


def shown_result(ctx: RunContext, text: str, name: str | None, published: Container[str]) -> str:
    """Return the result for the node's row and messages; a long one is cut and names its file."""
    place = "published" if name is not None and name in published else "scratch"
    whole = f"in nodes/{ctx.node.id}/{place}/{name}" if name else f"in thread {ctx.lease.thread_id}"
    return texts.fit_message(text, whole=f"The whole text is {whole}.") if text.strip() else text


UNKNOWN = "It may or may not have happened. Find out before you make it again."
IN_DOUBT = f"The runtime was cut off while this call was under way. {UNKNOWN}"
TOO_LATE = "Stopped: the time limit of this work is reached."
SAME_CALL = "Not made again: this reply holds the same call before ({first}). {came}"
SLEEPS = (
    "Not made: the command sleeps while tasks that you gave away are open, and nobody can reach "
    "you meanwhile. To wait for them at no cost, {how}; you go on when the first of them has ended."
)
TOO_LONG = (
    "The arguments of this call are long, and later requests show only their beginning and end. "
    "Do not send them again: write long text to a file, in several calls of at most {most:,} "
    "characters, and name the file."
)
GRACE_S = 5.0
"""How long a `once` tool may outlast the time limit, so that it ends its command in order."""


class Halted(Exception):
    """The node was cancelled or paused; the run stops at this step."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt)
        self.halt = halt


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """Makes the tool calls of one run, as its policies allow."""

    tools: Mapping[str, Tool]
    budget: BudgetPolicy
    permission: PermissionPolicy
    readings: Readings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "readings", Readings(self.tools))

    async def answer(self, ctx: RunContext, call: ToolCall) -> Answer:
        """Make one call and record its answer; a `transaction` tool commits both together.

        Raises `Halted` if the node was paused or cancelled.
        """
        # Before the next tool acts: a crash during a call then loses the answer of that call alone.
        if ctx.deferred_answers:
            await self.commit_deferred(ctx)
        # The wait of an earlier run is still open; a second one would violate its key.
        if waiting_on := ctx.parked_calls.get(call.id):
            return Pending(waiting_on)
        tool = self.tools.get(call.name)
        if tool is None:
            text = CUT_OFF if call.is_cut_off else no_such_tool(call.name, self.tools)
            text = call.refusal or text
            return await self._record(ctx, call, Done(text, failed=True))
        try:
            if (same := self._same_call(ctx, tool, call)) is not None:
                return await self._record(ctx, call, same)
            basis = failed_basis(ctx.transcript, call, self.tools)
            # A call that was begun is not held back: what came of it must be found out.
            is_begun = ctx.transcript.intent(call.id) is not None
            if basis is not None and not basis.was_made and not is_begun:
                return await self._record(ctx, call, Done(basis.refusal(), failed=True))
            return await self._call(ctx, tool, call)
        except (Refused, Misconfigured) as refusal:
            return await self._record(ctx, call, _refused(ctx, refusal))

    def _same_call(self, ctx: RunContext, tool: Tool, call: ToolCall) -> Done | None:
        """Return the answer to a call that its reply holds before; None if it is the first.

        Only for calls that give work away or must not be made twice, and for those about which the
        person has just been asked: models repeat such calls by mistake, never on purpose.
        """
        reply = ctx.transcript.last_reply
        if reply is None:
            return None
        is_single = tool.properties.delegates or tool.effect == "once"
        for first in reply.calls:
            if first.id == call.id:
                return None
            if (first.name, first.arguments) == (call.name, call.arguments):
                came = _outcome_of(ctx, first)
                if is_single or ASKED in came:
                    return Done(SAME_CALL.format(first=first.id, came=came))
        return None

    async def _refuse_sleep(self, ctx: RunContext, arguments: dict[str, Any]) -> None:
        """Refuse a command that sleeps long while delegated tasks are open."""
        command = str(arguments.get("command", ""))
        if batches.seconds_asleep(command) <= batches.LONGEST_SLEEP_S:
            return
        tasks = await ctx.store.read(unfinished.open_task_ids, ctx.lease)
        if tasks:
            blocking = [
                t.name for t in self.tools.values() if "blocking" in t.arguments.model_fields
            ]
            call = f'call {blocking[0]}(id="{tasks[0]}", blocking=true)' if blocking else ""
            raise Refused(SLEEPS.format(how=call or "reply without a call"))

    async def _call(self, ctx: RunContext, tool: Tool, call: ToolCall) -> Answer:
        given, waits = tool.without_wait(call.arguments)
        call = call if given is call.arguments else replace(call, arguments=given)
        arguments = tool.read(call)
        ctx.current_call_id, ctx.label_before_call = call.id, ctx.label
        if begun := ctx.transcript.intent(call.id):  # a crash or a cancel cut this call off
            answer = await tool.resolve(ctx, call, begun.foreseen) if tool.resolve else None
            return await self._record(ctx, call, answer or Done(IN_DOUBT, failed=True))
        if reason := self.budget.refusal(ctx, call.name):
            raise Refused(f"Not allowed: {reason}")
        validated = ToolCall(id=call.id, name=call.name, arguments=arguments)
        ruling = await self.permission.rule_on(ctx, validated)
        if ruling.refusal is not None:
            return await self._record(ctx, call, Done(ruling.refusal, failed=True))
        ctx.is_confirmed = ruling.is_confirmed
        if ruling.needs_person:
            decision = await self._ask_person(ctx, validated, ruling, waits=waits)
            # Any other answer: `ask_permission` has written it.
            if decision != APPROVED:
                return decision
            ctx.is_confirmed = True
        if tool.properties.runs_commands:
            await self._refuse_sleep(ctx, arguments)
        return await self._make(ctx, tool, call, arguments)

    async def _make(
        self, ctx: RunContext, tool: Tool, call: ToolCall, arguments: dict[str, Any]
    ) -> Answer:
        if tool.effect == "transaction":
            before = self._earlier_look(ctx, tool, call)

            def act(tx: Tx) -> Answer:
                answer = tool.act(tx, ctx, **arguments)
                is_new = not isinstance(answer, Done) or _fenced(ctx, answer).text != before
                if before is None or is_new:
                    return answer
                # A second look that finds nothing new waits, as if it were blocking.
                if "blocking" in arguments:
                    return tool.act(tx, ctx, **arguments | {"blocking": True})
                return unfinished.pending_look(tx, ctx.lease) or answer

            answer = await self._perform(ctx, call, act)
            if isinstance(answer, Pending):
                ctx.parked_calls[call.id] = answer.waiting_on
            return answer
        if tool.effect == "once":
            known = tool.foresee(ctx, **arguments) if tool.foresee else {}
            label = await tool.brings(ctx, **arguments) if tool.brings else CLEAN
            # From this commit on the call is never made again by the runtime.
            ctx.add_turns(
                await ctx.store.write(journal.intend, ctx.lease, call, known, label=label)
            )
        answer = await _run_in_time(ctx, tool, arguments)
        if isinstance(answer, InTransaction):
            try:
                return await self._perform(ctx, call, answer.act)
            except Refused as refusal:
                answer = await answer.if_refused(refusal)
        if isinstance(answer, Done):
            if tool.effect == "once" and (basis := failed_basis(ctx.transcript, call, self.tools)):
                answer = replace(answer, text=f"{answer.text}\n{basis.remark()}")
            if tool.properties.reads_file:
                stored = _fenced(ctx, answer).text
                answer = self.readings.shortened(ctx.transcript, call, answer, stored=stored)
        return await self._record(ctx, call, answer)

    async def _perform(
        self, ctx: RunContext, call: ToolCall, act: Callable[[Tx], Answer]
    ) -> Answer:
        """Run a function of a transaction; its rows and its answer commit together."""

        def fenced(tx: Tx) -> Answer:
            answer = act(tx)
            return _fenced(ctx, answer) if isinstance(answer, Done) else answer

        done = await ctx.store.write(journal.perform, ctx.lease, call, fenced)
        answer, turns, ctx.has_word = done
        ctx.add_turns(*turns)
        return answer

    def _earlier_look(self, ctx: RunContext, tool: Tool, call: ToolCall) -> str | None:
        """Return the answer to the same look before this one, if nothing was done in between."""
        if not tool.properties.polls or call.arguments.get("blocking"):
            return None
        return batches.earlier_look(ctx.transcript, call, self.tools)

    async def _ask_person(
        self, ctx: RunContext, call: ToolCall, ruling: Ruling, *, waits: bool
    ) -> Answer:
        """Return the person's decision; pending, or that they were asked, if there is none yet."""

        def ask(tx: Tx) -> Answer:
            return self.permission.approve(tx, ctx, call, ruling, waits=waits)

        answer, turns = await ctx.store.write(journal.ask_permission, ctx.lease, call, ask)
        ctx.add_turns(*turns)
        return answer

    async def commit_deferred(self, ctx: RunContext) -> None:
        """Commit the deferred answers; raise `Halted` if the node was paused or cancelled."""
        if halt := await self.write_deferred(ctx):
            raise Halted(halt)

    async def write_deferred(self, ctx: RunContext) -> Halt | None:
        """Commit the deferred answers; return a halt that was asked for meanwhile."""
        if not ctx.deferred_answers:
            return None
        answers = ctx.take_deferred_answers()
        halt, ctx.has_word = await ctx.store.write(journal.answer, ctx.lease, answers)
        return halt

    async def _record(self, ctx: RunContext, call: ToolCall, answer: Answer) -> Answer:
        if isinstance(answer, Done) and answer.outcome is None:
            if answer.failed and call.as_sent.arguments != call.as_written.arguments:
                hint = TOO_LONG.format(most=LONGEST_SENT)
                answer = replace(answer, text=f"{answer.text}\n{hint}")
            # The next write commits it: the yield point, or another call.
            is_long = len(answer.text) > ANSWER_CHARACTERS
            kept = await spill(ctx, call, answer) if is_long else answer
            ctx.defer_answer(call, _fenced(ctx, kept))
        else:
            ctx.add_turns(*await ctx.store.write(journal.record, ctx.lease, call, answer))
        return answer


def _fenced(ctx: RunContext, answer: Done) -> Done:
    """Return a tool's answer. Untrusted text that the tool has not fenced is put between the marker
    lines of a fence."""
    if not answer.label or answer.is_fenced:
        return answer
    source = f"{ctx.describe(answer.label)}, or work that has read it"
    text = enclose_foreign(answer.text, thread=ctx.lease.thread_id, source=source)
    return replace(answer, text=text, is_fenced=True)


def _refused(ctx: RunContext, refusal: AgiraphError) -> Done:
    """Return the answer to a call that failed: our sentence, and what others said, in a fence."""
    text, label = str(refusal), refusal.label
    if refusal.quoted:
        label = label or UNKNOWN_SOURCE
        source = ctx.describe(label)
        fenced = enclose_foreign(refusal.quoted, thread=ctx.lease.thread_id, source=source)
        text = f"{text}\n{fenced}"
    return Done(
        text,
        failed=True,
        sends_back=isinstance(refusal, SentBack),
        reminds_of=refusal.question_id if isinstance(refusal, AnswerFirst) else None,
        label=label,
        is_fenced=True,
    )


def _outcome_of(ctx: RunContext, call: ToolCall) -> str:
    """Return a sentence with the answer to an earlier call of the same reply, or what that call
    waits for."""
    if (waiting_on := ctx.parked_calls.get(call.id)) is not None:
        return f"It waits for {waiting_on.id}."
    answers = (t.text for t in reversed(ctx.transcript.turns) if t.ref == call.id)
    return f"It gave: {texts.truncate(next(answers, 'no answer yet'), texts.REASON)}"


async def _run_in_time(
    ctx: RunContext, tool: Tool, arguments: dict[str, Any]
) -> Answer | InTransaction:
    """Run the tool for no longer than the node's time limit allows."""
    is_once = tool.effect == "once"
    if (left := ctx.seconds_left) is None:
        return await tool.act(ctx, **arguments)
    limit = asyncio.timeout(left + GRACE_S * is_once)
    try:
        async with limit:
            return await tool.act(ctx, **arguments)
    except TimeoutError:
        if not limit.expired():
            raise
    return Done(f"{TOO_LATE} {UNKNOWN}" if is_once else TOO_LATE, failed=True)
