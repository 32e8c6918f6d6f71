"""Command line: a program that works as a teammate, with files to talk through.

It finds its task in `_task.md`, hears through `_inbox.md`, speaks through `_outbox.md` and hands in
with `_result.md`. Its processes end with it, with its time, with a cancel and with the runtime. A
pause lets it work on to its end: it has no place to stop at.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from string import Template
from typing import Any

import orjson

from agiraph.domain.chat import Lease, ToolCall
from agiraph.domain.errors import NotFound, Refused, StoreUnavailable
from agiraph.domain.outcomes import Answer, Done, Failed, Finished, Outcome, Parked, Pending
from agiraph.domain.taint import MARK, by_program
from agiraph.domain.taint import is_foreign as is_from_strangers
from agiraph.domain.work import RESULT_FILE, StopReason
from agiraph.home import commands
from agiraph.home.commands import CommandResult
from agiraph.home.safe_folder import Folder
from agiraph.policies.permission import PermissionPolicy
from agiraph.prompts import prompt
from agiraph.run_context import RunContext
from agiraph.runtime import program_runs
from agiraph.runtime.program_mailbox import INBOX, LONGEST_OUTBOX, OUTBOX, Post, own_turns
from agiraph.runtime.program_runs import Run
from agiraph.services.lifecycle import journal, stalled
from agiraph.store import threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools import acceptance, shell
from agiraph.tools.base import NO_TEXT

TASK, CONTEXT, RESULT = "_task.md", "_context.json", RESULT_FILE
LOOK_SECONDS = 0.25
"""How often the files are looked at while the program runs."""
LINGER_SECONDS = 10.0
"""How long a program may go on once its result is there and stays as it is."""
LONGEST_SECONDS = 3600.0
"""How long it may take if its node does not say."""
SHORTEST_SECONDS = 0.1
LONGEST_RESULT = 20_000
OUTPUT_SHOWN = 4000
SELDOM, LONGEST_PAUSE = 1.1, 10.0
"""How much longer each pause between two pieces of output is than the one before, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program by name, with what it may see of the environment."""

    command: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    resumes: bool = False
    """Whether it goes on where it was if it is started again, so that no one need be asked."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """Runs a node of a `cli` agent."""

    commands: Mapping[str, Command]

    async def run(self, ctx: RunContext) -> Outcome:
        folder, _ = ctx.scope.resolve("scratch", "w")
        with folder:
            if (outcome := await self._kept_back(ctx)) is not None:
                return outcome
            try:
                outcome = await self._finish_last_run(ctx, folder)
                if outcome is None:
                    run = await self._attempt(ctx, folder)
                    outcome = await _outcome(ctx, folder, run.result)
            except Refused as refused:
                return Failed(StopReason.NO_RESULT, f"The command cannot be run: {refused}")
        if isinstance(outcome, Finished):
            await ctx.store.write(journal.end, ctx.lease, outcome)
        return outcome

    async def _finish_last_run(self, ctx: RunContext, folder: Folder) -> Outcome | None:
        """Return what came of a run that an earlier runtime started; None: start the program."""
        run = await program_runs.last(ctx)
        if run is None:
            return None
        post = Post(ctx, folder)
        await post.collect()
        await program_runs.record(ctx, run)
        if run.ended_by_itself or await asyncio.to_thread(_handed_in, folder):
            return await _outcome(ctx, folder, run.result, cut_off=not run.ended_by_itself)
        named = self.commands.get(ctx.agent.command or "")
        if named is not None and named.resumes:
            return None
        # Mail for the run that died must not start the program again as a task of its own.
        await post.exchange()
        outcome = await program_runs.decide(ctx, run)
        return await _with_files(ctx, folder, outcome) if isinstance(outcome, Failed) else outcome

    async def _kept_back(self, ctx: RunContext) -> Outcome | None:
        """What became of a command that needs a person's word first, or may not be run at all.

        One that is named in the settings a person has put there. Any other is a model's: it may do
        no more than the same words in `bash`.
        """
        command = ctx.agent.command or ""
        is_foreign = is_from_strangers(ctx.tainted_by)
        if command in self.commands and not is_foreign:
            return None
        # With a task that strangers had a hand in it is as a command that may reach them.
        arguments = {"command": command} | ({"network": True} if is_foreign else {})
        call = ToolCall(id="command", name=shell.bash.name, arguments=arguments)
        if (waiting_on := ctx.parked_calls.get(call.id)) is not None:
            return Parked((waiting_on,))  # asked before a crash; a second wait would be refused
        policy = PermissionPolicy({shell.bash.name: shell.bash})
        answer = policy.settled(ctx, call)
        if answer is None and policy.needs_approval(ctx, call):

            def ask(tx: Tx) -> Answer:
                return policy.approve(tx, ctx, call)

            answer, turns = await ctx.store.write(journal.weigh, ctx.lease, call, ask)
            ctx.add_turns(*turns)
        match answer:
            case Pending(waiting_on, reason):
                return Parked((waiting_on,), reason)
            case Done(text, failed=True):
                return Failed(StopReason.NO_RESULT, text)
            case _:
                return None

    async def _attempt(self, ctx: RunContext, folder: Folder) -> Run:
        call = program_runs.next_call(ctx)
        post = Post(ctx, folder)
        await asyncio.to_thread(_lay_out, ctx, folder)
        await asyncio.to_thread(post.lay_out)
        await post.exchange()
        known = {
            "command": ctx.agent.command or "",
            "seconds": _seconds(ctx),
            # Whatever it says from here on, no member of the team has looked at.
            MARK: by_program(ctx.agent.name),
        }
        ctx.add_turns(await ctx.store.write(journal.intend, ctx.lease, call, known))
        run = Run(call, await self._supervise(ctx, folder, call))
        await post.collect()
        await program_runs.record(ctx, run)
        return run

    async def _supervise(self, ctx: RunContext, folder: Folder, call: ToolCall) -> CommandResult:
        named = self.commands.get(ctx.agent.command or "")
        node = ctx.home.node_path(ctx.team.id, ctx.node.id)
        watch = _Watch(ctx, folder)
        running = asyncio.ensure_future(
            commands.run(
                program_runs.spool(ctx, call),
                command=named.command if named else ctx.agent.command or "",
                cwd=node / "scratch",
                timeout=_seconds(ctx),
                env=commands.child_environment(node, named.environment if named else {}),
                view=shell.view(ctx, offline=False),
                limits=ctx.command_rules.limits,
                on_output=watch.hear,
            )
        )
        try:
            while not running.done() and not watch.is_over:
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
                with suppress(StoreUnavailable):  # the program need not know
                    await watch.look(last=running.done())
        finally:
            # Cancelled, it ends its whole process tree before it lets go.
            running.cancel()
            await asyncio.wait({running})
        if not running.cancelled():
            return running.result()
        ended = await asyncio.to_thread(commands.resolve, program_runs.spool(ctx, call))
        assert ended is not None
        return ended


class _Watch:
    """Looks after a running program: what it says, whether it is silent, whether it is done."""

    def __init__(self, ctx: RunContext, folder: Folder) -> None:
        self._ctx = ctx
        self._folder = folder
        self._post = Post(ctx, folder)
        self._said, self._bytes = b"", 0
        self._seen = 0
        self._quiet = self._lingers = self._silent = 0.0
        self._pause = LOOK_SECONDS
        self._result = ""

    @property
    def is_over(self) -> bool:
        return self._lingers >= LINGER_SECONDS

    def hear(self, piece: bytes) -> None:
        self._said = (self._said + piece)[-OUTPUT_SHOWN:]
        self._bytes += len(piece)

    async def look(self, *, last: bool) -> None:
        result = await asyncio.to_thread(_handed_in, self._folder)
        is_settled = result and result == self._result
        self._lingers = self._lingers + LOOK_SECONDS if is_settled else 0.0
        self._result = result
        await self._post.exchange()
        self._quiet = 0.0 if self._bytes > self._seen else self._quiet + LOOK_SECONDS
        self._seen = self._bytes
        await self._tell(last)
        if self._quiet >= stalled.AFTER_SECONDS:
            self._quiet = 0.0
            await self._ctx.store.write(stalled.note, self._ctx.node.id)

    async def _tell(self, last: bool) -> None:
        """Let everyone see what it printed since: at once, and ever more seldom if it goes on."""
        self._silent += LOOK_SECONDS
        if self._bytes == 0 or (self._silent < self._pause and not last):
            return
        said, size = self._said, self._bytes
        self._said, self._bytes, self._seen, self._silent = b"", 0, 0, 0.0
        self._pause = min(self._pause * SELDOM, LONGEST_PAUSE)
        text = said.decode(errors="replace").replace("\0", NO_TEXT)
        await self._ctx.store.write(_emit_output, self._ctx.lease, text, size)


def _emit_output(tx: Tx, lease: Lease, text: str, size: int) -> None:
    threads.check_lease(tx, lease)
    tx.emit(lease.team_id, "node.output", node_id=lease.node_id, text=text, bytes=size)
    if NODES.get(tx, lease.node_id).stalled_at is not None:
        NODES.update(tx, lease.node_id, stalled_at=None)


def _seconds(ctx: RunContext) -> float:
    left = ctx.seconds_left
    return LONGEST_SECONDS if left is None else max(left, SHORTEST_SECONDS)


def _lay_out(ctx: RunContext, folder: Folder) -> None:
    """Write the task and what is known so far; but for a result, what was left stays."""
    own = own_turns(ctx)
    assignment = next(turn.text for turn in own if turn.role == "user")
    words = Template(prompt("cli_task")).substitute(assignment=assignment)
    folder.write(TASK, words.encode(errors="replace"))
    team = ctx.home.path / "teams" / ctx.team.id
    earlier = dict.fromkeys(t.node_id for t in ctx.transcript.turns if t.node_id != ctx.node.id)
    about: dict[str, Any] = {
        "team": {"id": ctx.team.id, "goal": ctx.team.goal},
        "agent": ctx.agent.name,
        "node": ctx.node.id,
        "attempt": len(program_runs.begun(own)) + 1,
        "acceptance": list(ctx.node.acceptance),
        "refs": {name: str(team / path) for name, path in ctx.node.refs.items()},
        "earlier": [str(team / "nodes" / node / "published") for node in earlier if node],
    }
    folder.write(CONTEXT, orjson.dumps(about, option=orjson.OPT_INDENT_2))
    with suppress(NotFound):
        folder.remove(RESULT)


async def _outcome(
    ctx: RunContext, folder: Folder, result: CommandResult, *, cut_off: bool = False
) -> Outcome:
    """A result counts, and nothing else: least of all an exit code."""
    handed_in = await asyncio.to_thread(_handed_in, folder)
    if not handed_in:
        return _nothing(result)
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    await asyncio.to_thread(_clear_up, folder, node.folder)
    doubts: list[str] = []
    if result.ended == "exited" and result.exit_code != 0:
        doubts.append(f"its command ended with exit code {result.exit_code}")
    if cut_off:
        doubts.append(f"its command was cut off with the runtime: {RESULT} may not be complete")
    manifest: dict[str, str] = {}
    try:
        manifest = await asyncio.to_thread(node.publish, handed_in)
    except Refused as error:
        doubts.append(f"its files could not be published: {error}")
    doubts += acceptance.lacks(ctx, manifest, [RESULT] * len(ctx.node.acceptance))
    return Finished(handed_in, StopReason.PUBLISHED, manifest, "; ".join(doubts) or None)


def _handed_in(folder: Folder) -> str:
    try:
        text = folder.read(RESULT, limit=4 * LONGEST_RESULT).decode(errors="replace")
    except Refused:
        return ""
    text = text.replace("\0", NO_TEXT).strip()
    if len(text) <= LONGEST_RESULT:
        return text
    return f"{text[:LONGEST_RESULT]}\n… (this is the beginning; the whole text is in {RESULT})"


def _nothing(result: CommandResult) -> Failed:
    last = program_runs.tail(result)
    ending = program_runs.ending(result)
    if result.ended == "timed_out":
        return Failed(StopReason.TIME_SPENT, f"The command ran out of time {ending}.{last}")
    return Failed(
        StopReason.NO_RESULT, f"The command ended without writing {RESULT} {ending}.{last}"
    )


async def _with_files(ctx: RunContext, folder: Folder, failed: Failed) -> Failed:
    """Publish what a program that was cut off has left, as a partial result."""
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    try:
        await asyncio.to_thread(_clear_up, folder, node.folder)
        manifest = await asyncio.to_thread(node.publish, failed.detail, partial=True)
    except Refused as error:
        where = f"nodes/{ctx.node.id}/scratch, because they could not be published: {error}"
        return Failed(failed.reason, f"{failed.detail} Its files so far are in {where}")
    where = f"Its files so far are in nodes/{ctx.node.id}/published."
    return Failed(failed.reason, f"{failed.detail} {where}", manifest=manifest)


def _clear_up(scratch: Folder, node: Folder) -> None:
    """What was only for talking is kept beside the result, not in it."""
    for name in (TASK, CONTEXT, INBOX, OUTBOX):
        with suppress(Refused):  # it was removed, or something else was made of it
            node.write(name, scratch.read(name, limit=LONGEST_OUTBOX), synced=False)
            scratch.remove(name)
