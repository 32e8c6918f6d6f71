"""Program runs: finds out how the last run of a program ended, and whether to start it again.

The runtime never starts a program again unasked: it may have sent mail or moved money before the
runtime crashed. The agent that assigned the task is told of the failure. If a person assigned it,
the person decides whether the program is started again.
"""

import asyncio
from pathlib import Path

from agiraph.core.domain.chat import AGAIN, ToolCall, Turn
from agiraph.core.domain.ids import SYSTEM
from agiraph.core.domain.outcomes import Answer, Done, Failed, Parked, Pending
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import of_program
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import ASKED_PERSON, StopReason, WaitingOn
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import Halted
from agiraph.core.services.lifecycle import journal
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import NO_TEXT
from agiraph.features.programs.mailbox import own_turns
from agiraph.sandbox import commands
from agiraph.sandbox.commands import CommandResult

QUOTED_CHARACTERS = 1000
"""Characters of output that are quoted when a program ended without a result."""

_RUN = "run-"
"""How the call ids of program runs begin."""


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a program: its entry in the thread and how it ended."""

    call: ToolCall
    result: CommandResult

    @property
    def ended_by_itself(self) -> bool:
        return self.result.ended in ("exited", "timed_out", "over_limit")


def next_call(ctx: RunContext) -> ToolCall:
    """Return the tool call under which the program's next start is recorded in the thread.

    Each start has its own number, and so its own folder for output and exit code (`spool`).
    """
    return _call(f"{_RUN}{len(started_runs(ctx.transcript.turns)) + 1}")


def started_runs(turns: list[Turn]) -> list[str]:
    """Return the call ids of the runs with an intent, oldest first.

    The intent is committed before the program starts, so a run without one never started.
    """
    return [t.ref for t in turns if t.role == "intent" and t.ref and t.ref.startswith(_RUN)]


def spool(ctx: RunContext, call: ToolCall) -> Path:
    """Return the folder in which the supervisor keeps the run's output and exit code."""
    return ctx.home.spool(f"{ctx.lease.thread_id}-{call.id}")


async def last(ctx: RunContext) -> Run | None:
    """Return the last run since the node was last retried; None if there was none.

    Processes of that run that are still alive are killed first.
    """
    own = own_turns(ctx)
    retried = max((n for n, t in enumerate(own) if t.note == AGAIN), default=0)
    if not (ids := started_runs(own[retried:])):
        return None
    call = _call(ids[-1])
    # Its processes may have outlived the runtime: they must not write beside a new run.
    result = await asyncio.to_thread(commands.resolve, spool(ctx, call))
    return None if result is None else Run(call, result)


async def record(ctx: RunContext, run: Run) -> None:
    """Record how a run ended, unless the thread has the record already.

    Raises `Halted` if the node was cancelled while the program ran.
    """
    if _is_answered(ctx, run.call):
        return
    text = f"{ending(run.result)}\n{output(run.result)}".rstrip()
    label = of_program(ctx.agent.name)
    done = Done(text, failed=run.result.exit_code != 0, label=label)
    halt, _ = await ctx.store.write(journal.answer, ctx.lease, [(run.call, done)])
    if halt == "cancel":
        raise Halted("cancel")


async def decide(ctx: RunContext, run: Run) -> Failed | Parked | None:
    """Return the outcome of a node whose program was cut off; None to run the program again."""
    what = _what_happened(run.result)
    if not _is_from_a_person(ctx):
        return Failed(
            StopReason.NO_RESULT, f"{what} Assign the task again to run it again.{tail(run.result)}"
        )
    question_call = ToolCall(id=f"again-{run.call.id}", name="command")
    refused = Failed(StopReason.NO_RESULT, f"{what} You decided not to run it again.")
    if _is_answered(ctx, question_call):
        return refused
    # Asked by an earlier run that parked, or died before it could: the wait is still open.
    if (waiting_on := ctx.parked_calls.get(question_call.id)) is not None:
        return Parked((waiting_on,))
    where = f"Its files so far are in nodes/{ctx.node.id}/scratch."
    question = (
        f"{what} {where} Shall it be run again from the beginning? Approve to run it again, deny "
        f"to give up.{tail(run.result)}"
    )

    def ask(tx: Tx) -> Answer:
        return _ask_person(tx, ctx, run, question)

    answer, turns = await ctx.store.write(journal.ask_permission, ctx.lease, question_call, ask)
    ctx.add_turns(*turns)
    match answer:
        case Pending(waiting_on, reason):
            return Parked((waiting_on,), reason)
        case Done(failed=True):
            return refused
        case _:
            return None


def ending(result: CommandResult) -> str:
    """Return how the run ended, in brackets."""
    over = f": {result.limit}" if result.limit else ""
    return f"[{result.ended}{over}, exit code {result.exit_code}, {result.seconds:.0f} s]"


def output(result: CommandResult) -> str:
    """Return the output as text that both databases can store."""
    return result.output.replace("\0", NO_TEXT)


def tail(result: CommandResult) -> str:
    """Return a sentence that quotes the end of the output."""
    text = output(result)[-QUOTED_CHARACTERS:].strip()
    return f" Its last words: {text}" if text else " It printed nothing."


def _call(run_id: str) -> ToolCall:
    return ToolCall(id=run_id, name="command")


def _is_answered(ctx: RunContext, call: ToolCall) -> bool:
    return any(turn.role == "tool" and turn.ref == call.id for turn in own_turns(ctx))


def _is_from_a_person(ctx: RunContext) -> bool:
    """Whether the program's task came from a person, so that no teammate hears of a failure."""
    creator = ctx.node.creator_id
    return is_person(creator) or creator in (SYSTEM, ctx.agent.id)


def _what_happened(result: CommandResult) -> str:
    how = "by a stop" if result.ended == "cancelled" else "by a crash"
    return (
        f"The program was cut off {how} of the runtime after {result.seconds:.0f} s and was not "
        "started again. It may or may not have done what it was asked to do."
    )


def _ask_person(tx: Tx, ctx: RunContext, run: Run, question: str) -> Answer:
    """Ask the person, or return what they have decided already."""
    shown = ToolCall(
        id=run.call.id, name=run.call.name, arguments={"command": ctx.agent.command or ""}
    )
    # The request names the run, so a crash after the question asks nobody twice.
    of_run = (m for m in messages.about(tx, "rerun", run.call.id) if m.node_id == ctx.node.id)
    asked = next(of_run, None) or bus.request(
        tx, ctx.lease, question, call=shown, topic="rerun", ref=run.call.id
    )
    if asked.decision == "approve":
        return Done("approved")
    if asked.decision == "deny":
        return Done("The human refused to run it again.", failed=True)
    return Pending(
        WaitingOn("approval", asked.id), f"{ASKED_PERSON} whether to run the program again"
    )
