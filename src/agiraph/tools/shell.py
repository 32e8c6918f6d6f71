"""Shell tool: runs commands under a supervisor, which records their end even if we crash."""

import asyncio
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agiraph.domain.chat import ToolCall
from agiraph.domain.fence import enclose_foreign
from agiraph.domain.labels import CLEAN, Label, join
from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.sinks import Sink, WayOut
from agiraph.domain.tools import EVERY_ROLE
from agiraph.home import commands, pipes, sandbox
from agiraph.home.command_output import SHOWN_BYTES
from agiraph.home.commands import CommandResult
from agiraph.run_context import RunContext
from agiraph.store import threads
from agiraph.tools.base import NO_TEXT, Known, tool

LONGEST_S = 3600
SHORTEST_S = 0.1
WITHOUT_NETWORK = (
    "(It ran without network and could write only here, since this thread holds words from {by}. "
    "If it needs more, make the call again with network=true: the human is asked.)"
)
WHOSE_LIMIT = (
    "Do it with less, or ask the human to raise the limit ([command_limits] in agiraph.toml)"
)
MAX_OUTPUTS = 20
"""Long outputs of earlier commands that a command can read, the newest ones."""


def _spool_name(ctx: RunContext, call_id: str) -> str:
    # The same name after a restart, so that `_resolve` finds what the supervisor recorded.
    return f"{ctx.lease.thread_id}-{call_id}"


def as_answer(result: CommandResult) -> Done:
    """Return a command's result as the model reads it: how it ended, then its output."""
    match result.ended:
        case "exited":
            # No duration for short commands, so that the breaker sees equal outcomes as equal.
            took = f", {result.seconds:.0f} s" if result.seconds >= 10 else ""
            over = f": {result.limit}. {WHOSE_LIMIT}" if result.limit else ""
            how = f"[exit code {result.exit_code}{took}{over}]"
        case "timed_out":
            how = f"[ended after {result.seconds:.0f} s: it ran out of time]"
        case "cancelled":
            how = f"[cancelled after {result.seconds:.1f} s]"
        case "over_limit":
            how = f"[ended after {result.seconds:.1f} s: {result.limit}. {WHOSE_LIMIT}]"
        case "interrupted":
            how = (
                f"[interrupted after {result.seconds:.1f} s: the runtime was cut off and the "
                "command with it. It may have done part of its work; look before you repeat it.]"
            )
    output = result.output.replace("\0", NO_TEXT)
    return Done(f"{how}\n{output}".rstrip(), failed=result.exit_code != 0)


def _as_labelled(ctx: RunContext, result: CommandResult, label: Label) -> Done:
    """Return a command's result with its output in a fence: it may hold strangers' words."""
    if result.output.strip():
        fenced = enclose_foreign(result.output, thread=ctx.lease.thread_id, source=str(label))
        result = replace(result, output=fenced)
    return replace(as_answer(result), label=label, is_fenced=True)


async def _resolve(ctx: RunContext, call: ToolCall, known: Known) -> Answer | None:
    """Answer a command that was running when the runtime crashed, from its spool."""
    spool = ctx.home.spool(_spool_name(ctx, call.id))
    result = await asyncio.to_thread(commands.resolve, spool)
    if result is None:
        return Done(
            "The runtime was cut off before this command began. It did not run; call it again "
            "if you still want it.",
            failed=True,
        )
    label = ctx.label or await _label_of(ctx, call.arguments["command"])
    return as_answer(result) if not label else _as_labelled(ctx, result, label)


async def _way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    command = str(call.arguments.get("command", ""))
    if call.arguments.get("network"):
        why = "the command would reach the network"
        return WayOut(sink=Sink.NETWORK_COMMAND, target=command, why=why)
    if not sandbox.is_possible():
        why = "commands cannot be confined on this machine"
        return WayOut(sink=Sink.UNCONFINED_COMMAND, target=command, why=why)
    return None


@tool(
    effect="once",
    runs_commands=True,
    way_out=_way_out,
    resolve=_resolve,
    basic_for=EVERY_ROLE,
)
async def bash(
    ctx: RunContext,
    command: Annotated[str, Field(min_length=1)],
    timeout: Annotated[int, Field(ge=1, le=LONGEST_S, description="Seconds")] = 120,
    network: Annotated[bool, Field(description="Ask the human for the network")] = False,
) -> Answer:
    """Run a shell command in scratch/ and get its exit code and output. It gets no input; what it
    leaves running is ended; a pipe fails if any part of it does. Long output is cut, and a file
    keeps all of it. After you have read from the web, commands have no network.
    """
    node, left = ctx.home.node_path(ctx.team.id, ctx.node.id), ctx.seconds_left
    label = ctx.label or await _label_of(ctx, command)
    is_offline = bool(label) and not ctx.is_vouched_for
    result = await commands.run(
        ctx.home.spool(_spool_name(ctx, ctx.current_call_id)),
        command=pipes.reporting(command),
        cwd=node / "scratch",
        # No command outlives the node's deadline. One that would have no time left still gets a
        # moment, so that the model is told "out of time" and not an odd error.
        timeout=timeout if left is None else min(timeout, max(left, SHORTEST_S)),
        env=commands.child_environment(node),
        view=view(ctx, offline=is_offline),
        limits=ctx.command_rules.limits,
    )
    if not label or not is_offline:
        return as_answer(result)
    answer = _as_labelled(ctx, result, label)
    if not answer.failed:
        return answer
    return replace(answer, text=f"{answer.text}\n{WITHOUT_NETWORK.format(by=label)}")


def view(ctx: RunContext, *, offline: bool) -> sandbox.View | None:
    """Return what a command of this node sees of the home; None (all) if the kernel is too old."""
    # An offline command gets its view all the same: the supervisor then refuses to run it, because
    # a command that must not reach the network may never run unconfined.
    if not offline and not sandbox.is_possible():
        return None
    return sandbox.view_of(
        ctx.home,
        ctx.scope,
        masked=ctx.command_rules.masked,
        refs=ctx.node.refs.values(),
        outputs=_long_outputs(ctx),
        offline=offline,
    )


def _long_outputs(ctx: RunContext) -> list[Path]:
    """Return the files of outputs that were cut: the model was told their names."""
    calls = [c.id for turn in ctx.transcript.turns for c in turn.calls if c.name == bash.name]
    spools = (ctx.home.spool(_spool_name(ctx, call_id)) for call_id in reversed(calls))
    files = (spool / "output" for spool in spools)
    is_long = (file for file in files if file.exists() and file.stat().st_size > SHOWN_BYTES)
    return list(islice(is_long, MAX_OUTPUTS))


async def _label_of(ctx: RunContext, command: str) -> Label:
    """Return the label of files that the command may read: those that other nodes published."""
    # By words, because nobody can tell which files a command will read. A path that the command
    # puts together while it runs is missed.
    if not any(
        word in command for word in ("..", "nodes", "node_", "published", str(ctx.home.path))
    ):
        return CLEAN
    return join(label for _, label in await ctx.store.read(threads.labelled, ctx.team.id))
