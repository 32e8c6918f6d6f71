"""Program runs: how the last run of a program ended, and what follows if the runtime cut it off.

A program is started at most once unasked: it may have sent mail or moved money before the runtime
died. A run that was cut off is told to the agent that gave the task. If a person gave it, the
person decides whether the program is started again.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agiraph.domain.chat import AGAIN, ToolCall, Turn
from agiraph.domain.ids import HUMAN, SYSTEM
from agiraph.domain.outcomes import Answer, Done, Failed, Parked, Pending
from agiraph.domain.taint import by_program
from agiraph.domain.work import StopReason
from agiraph.home import commands
from agiraph.home.commands import CommandResult
from agiraph.run_context import RunContext
from agiraph.runtime.program_mailbox import own_turns
from agiraph.services.lifecycle import journal
from agiraph.services.mail import bus
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.tools.base import NO_TEXT

LAST_OUTPUT = 1000
"""How much of a program's output, in characters, is quoted when it ended without a result."""

_RUN = "run-"


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a program: its entry in the thread and how it ended."""

    call: ToolCall
    result: CommandResult

    @property
    def ended_by_itself(self) -> bool:
        return self.result.ended in ("exited", "timed_out", "over_limit")


def next_call(ctx: RunContext) -> ToolCall:
    """Return the entry for the next start; every start has its own number and spool."""
    return _call(f"{_RUN}{len(begun(ctx.transcript.turns)) + 1}")


def begun(turns: list[Turn]) -> list[str]:
    """Return the ids of the runs that were about to start, oldest first."""
    return [t.ref for t in turns if t.role == "intent" and t.ref and t.ref.startswith(_RUN)]


def spool(ctx: RunContext, call: ToolCall) -> Path:
    return ctx.home.spool(f"{ctx.lease.thread_id}-{call.id}")


async def last(ctx: RunContext) -> Run | None:
    """Return the newest run of this try; None if no program was started in it.

    Whatever of the program is still alive is killed first.
    """
    own = own_turns(ctx)
    retried = max((n for n, t in enumerate(own) if (t.ref or "").startswith(AGAIN)), default=0)
    if not (ids := begun(own[retried:])):
        return None
    call = _call(ids[-1])
    result = await asyncio.to_thread(commands.resolve, spool(ctx, call))
    return None if result is None else Run(call, result)


async def record(ctx: RunContext, run: Run) -> None:
    """Write down how a run ended, unless the thread says so already."""
    if _is_answered(ctx, run.call):
        return
    said = f"{ending(run.result)}\n{output(run.result)}".rstrip()
    tainted_by = by_program(ctx.agent.name)
    done = Done(said, failed=run.result.exit_code != 0, tainted_by=tainted_by)
    await ctx.store.write(journal.answer, ctx.lease, [(run.call, done)])


async def decide(ctx: RunContext, run: Run) -> Failed | Parked | None:
    """Return what becomes of a node whose program was cut off; None if it is to be run again."""
    what = _what_happened(run.result)
    if not _is_from_a_person(ctx):
        return Failed(
            StopReason.NO_RESULT, f"{what} Assign the task again to run it again.{tail(run.result)}"
        )
    asking = ToolCall(id=f"again-{run.call.id}", name="command")
    refused = Failed(StopReason.NO_RESULT, f"{what} You decided not to run it again.")
    if _is_answered(ctx, asking):
        return refused
    if (waiting_on := ctx.parked_calls.get(asking.id)) is not None:
        return Parked((waiting_on,))
    where = f"Its files so far are in nodes/{ctx.node.id}/scratch."
    question = (
        f"{what} {where} Shall it be run again from the beginning? Approve to run it again, deny "
        f"to give up.{tail(run.result)}"
    )

    def ask(tx: Tx) -> Answer:
        return _asked(tx, ctx, run, question)

    answer, turns = await ctx.store.write(journal.weigh, ctx.lease, asking, ask)
    ctx.add_turns(*turns)
    match answer:
        case Pending(waiting_on, reason):
            return Parked((waiting_on,), reason)
        case Done(failed=True):
            return refused
        case _:
            return None


def ending(result: CommandResult) -> str:
    over = f": {result.limit}" if result.limit else ""
    return f"[{result.ended}{over}, exit code {result.exit_code}, {result.seconds:.0f} s]"


def output(result: CommandResult) -> str:
    return result.output.replace("\0", NO_TEXT)


def tail(result: CommandResult) -> str:
    """Return the last output as a sentence to put after another."""
    said = output(result)[-LAST_OUTPUT:].strip()
    return f" Its last words: {said}" if said else " It printed nothing."


def _call(run_id: str) -> ToolCall:
    return ToolCall(id=run_id, name="command")


def _is_answered(ctx: RunContext, call: ToolCall) -> bool:
    return any(turn.role == "tool" and turn.ref == call.id for turn in own_turns(ctx))


def _is_from_a_person(ctx: RunContext) -> bool:
    """Whether no other agent would be told of a failure."""
    return ctx.node.creator_id in (HUMAN, SYSTEM, ctx.agent.id)


def _what_happened(result: CommandResult) -> str:
    how = "by a stop" if result.ended == "cancelled" else "by a crash"
    return (
        f"The program was cut off {how} of the runtime after {result.seconds:.0f} s and was not "
        "started again. It may or may not have done what it was asked to do."
    )


def _asked(tx: Tx, ctx: RunContext, run: Run, question: str) -> Answer:
    """Put the question to the person, or return what they decided before."""
    key = f"rerun:{ctx.node.id}:{run.call.id}"
    shown = ToolCall(
        id=run.call.id, name=run.call.name, arguments={"command": ctx.agent.command or ""}
    )
    asked = messages.approval(tx, key) or bus.ask(
        tx,
        ctx.lease,
        text=question,
        kind="approval",
        options=("approve", "deny"),
        ref=key,
        call=shown,
    )
    if asked.decision == "approve":
        return Done("approved")
    if asked.decision == "deny":
        return Done("The human refused to run it again.", failed=True)
    return Pending(f"approval:{asked.id}", "asked the human whether to run the program again")
