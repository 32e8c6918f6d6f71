"""Command line: runs a node whose worker is a program instead of a model.

The program reads its task from `_task.md` and messages from `_inbox.md`, writes messages to
`_outbox.md` and its result to `_result.md`. All its processes end when it exits, at its time limit,
after a cancel, and with the runtime. A pause does not stop it, because it has no yield points.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import orjson

from agiraph.core.domain.agents import Command
from agiraph.core.domain.chat import Lease, ToolCall
from agiraph.core.domain.errors import NotFound, Refused, StoreUnavailable
from agiraph.core.domain.events.work import NodeOutput
from agiraph.core.domain.outcomes import (
    Answer,
    Done,
    Failed,
    Finished,
    InTransaction,
    Outcome,
    Parked,
    Pending,
)
from agiraph.core.domain.provenance.labels import Label, of_folder, of_program
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.text.command_words import executable_of
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import RESULT_FILE, StopReason, WorkNode
from agiraph.core.home.safe_folder import Folder
from agiraph.core.policies.permission import PermissionPolicy
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.executor import Executor
from agiraph.core.services.lifecycle import journal, timers
from agiraph.core.store import teams, threads
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import acceptance, work
from agiraph.core.tools.base import NO_TEXT
from agiraph.core.tools.commands import command_gate, private_sends, shell
from agiraph.core.tools.files import given_folders
from agiraph.core.tools.work import Publish
from agiraph.features.programs import runs as program_runs
from agiraph.features.programs.mailbox import INBOX, OUTBOX, OUTBOX_BYTES, ProgramMailbox, own_turns
from agiraph.features.programs.runs import Run
from agiraph.sandbox import commands
from agiraph.sandbox import credentials as program_credentials
from agiraph.sandbox.commands import CommandResult
from agiraph.sandbox.credentials import PRESETS
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.gate import vendors
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.sandbox import SYSTEM, Mount, Spec

TASK, CONTEXT, RESULT = "_task.md", "_context.json", RESULT_FILE
POLL_S = 0.25
"""How often the files are read while the program runs."""
LINGER_S = 10.0
"""How long a program may run on after its result has stopped changing."""
DEFAULT_LIMIT_S = 3600.0
"""The time limit of a node without one."""
SHORTEST_LIMIT_S = 0.1
RESULT_CHARACTERS = 20_000
"""Characters of a result file that become the node's result; the published file has all of them."""
OUTPUT_BYTES = 4000
"""Bytes of output that one event shows."""
BACKOFF, LONGEST_PAUSE_S = 1.1, 10.0
"""Growth of the pause between two output events, and its limit: a chatty program must not fill the
events table."""


def _checked_as(label: Label) -> PermissionPolicy:
    """Return the permission policy for the start of a program on a task with this label.

    The start is checked as a call of `bash`, so the team's rules for commands apply. On a labelled
    task it counts as the sink `PROGRAM`, otherwise as any command.
    """

    async def way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
        command, why = str(call.arguments["command"]), "a program would be run on this task"
        if label:
            return WayOut(sink=Sink.PROGRAM, target=command, why=why)
        return shell.unconfined_way_out(ctx, command)

    return PermissionPolicy({shell.bash.name: replace(shell.bash, way_out=way_out)})


async def run(executor: Executor, ctx: RunContext) -> Outcome:
    """Run the agent's program on its task and return how the task ended."""
    return await _ProgramRunner(executor.commands).run(ctx)


@dataclass(frozen=True, slots=True)
class _ProgramRunner:
    """Runs a node of a `cli` agent."""

    commands: Mapping[str, Command]
    """Programs from the settings, by name."""

    async def run(self, ctx: RunContext) -> Outcome:
        """Run the agent's program on its task and return how the task ended.

        If an earlier process ran the program and died, that run's result counts; without one the
        program is not started again unasked.
        """
        folder, _ = ctx.scope.resolve("scratch", "w")
        with folder:
            # On every run, not only the first: the permission may have been
            # withdrawn while the node waited.
            if (outcome := await self._check_permission(ctx)) is not None:
                return outcome
            try:
                outcome = await self._finish_last_run(ctx, folder)
                if outcome is None:
                    run = await self._attempt(ctx, folder)
                    outcome = await _outcome(ctx, folder, run)
            except Refused as refused:
                return Failed(StopReason.NO_RESULT, f"The command cannot be run: {refused}")
        if isinstance(outcome, Finished):
            await ctx.store.write(journal.end, ctx.lease, outcome)
        return outcome

    async def _finish_last_run(self, ctx: RunContext, folder: Folder) -> Outcome | None:
        """Return the outcome of a run that an earlier runtime started; None: start the program."""
        run = await program_runs.last(ctx)
        if run is None:
            return None
        mailbox = ProgramMailbox(ctx, folder)
        await mailbox.collect()
        await given_folders.catch_up(ctx)
        await program_runs.record(ctx, run)
        if run.ended_by_itself or await asyncio.to_thread(_read_result, folder):
            return await _outcome(ctx, folder, run, cut_off=not run.ended_by_itself)
        named = self.commands.get(ctx.agent.command or "")
        if named is not None and named.resumes:
            return None
        # Mail for the run that died must not start the program again as a task of its own.
        await mailbox.exchange()
        outcome = await program_runs.decide(ctx, run)
        return (
            await _publish_partial(ctx, folder, outcome) if isinstance(outcome, Failed) else outcome
        )

    async def _check_permission(self, ctx: RunContext) -> Outcome | None:
        """Return the outcome if the command waits for approval or is refused; None if it may run.

        A person has put the programs of the settings there. A model wrote any other command, so it
        is checked as a call of `bash` would be.
        """
        command = ctx.agent.command or ""
        label = ctx.label | given_folders.label_of(ctx)  # it reads given folders by itself
        label = label.without(await ctx.store.read(self._known_words, ctx))
        if command in self.commands and not label:
            return None
        # A program has network: it is not run offline.
        is_open = bool(label) or bool(await private_sends.sources(ctx))
        arguments = {"command": command} | ({"network": "open"} if is_open else {})
        call = ToolCall(id="command", name=shell.bash.name, arguments=arguments)
        if (waiting_on := ctx.parked_calls.get(call.id)) is not None:
            return Parked((waiting_on,))  # asked before a crash; a second wait would be refused
        policy = _checked_as(label)
        ruling = await policy.rule_on(ctx, call)
        if ruling.refusal is not None:
            return Failed(StopReason.NO_RESULT, ruling.refusal)
        answer: Answer | None = None
        if ruling.needs_person:

            def ask(tx: Tx) -> Answer:
                return policy.approve(tx, ctx, call, ruling, waits=True)

            answer, turns = await ctx.store.write(journal.ask_permission, ctx.lease, call, ask)
            ctx.add_turns(*turns)
        match answer:
            case Pending(waiting_on, reason):
                return Parked((waiting_on,), reason)
            case Done(text, failed=True):
                return Failed(StopReason.NO_RESULT, text)
            case _:
                ctx.is_confirmed = ruling.is_confirmed or answer is not None
                return None

    def _known_words(self, tx: Tx, ctx: RunContext) -> set[str]:
        """Return the sources of words that start this program without a person: the same command,
        and if the settings name it, the other programs of the settings and the team's folders, to
        which a person let it. So a team of programs goes on by itself, and what one of them says
        starts no other command."""
        command = ctx.agent.command
        is_named = command in self.commands
        known = self.commands.keys() if is_named else {command}
        programs = (agent for agent in teams.everyone(tx, ctx.team.id) if agent.command in known)
        folders = ctx.team.folders if is_named else ()
        return {source for agent in programs for source in of_program(agent.name).sources} | {
            source for folder in folders for source in of_folder(folder.name).sources
        }

    async def _attempt(self, ctx: RunContext, folder: Folder) -> Run:
        call = program_runs.next_call(ctx)
        mailbox = ProgramMailbox(ctx, folder)
        await asyncio.to_thread(_write_task, ctx, folder)
        await asyncio.to_thread(mailbox.write_files)
        await mailbox.exchange()
        # Committed before the program starts: after a crash the intent is the only proof that it
        # may have run (`program_runs.started_runs`).
        intent = await ctx.store.write(
            journal.intend,
            ctx.lease,
            call,
            {"command": ctx.agent.command or ""},
            timeout_s=_seconds(ctx),
            # From here on the thread is labelled: nobody on the team wrote what the program says.
            label=of_program(ctx.agent.name),
        )
        ctx.add_turns(intent)
        async with given_folders.watched(ctx) as watched:
            run = Run(call, await self._supervise(ctx, folder, call, watched.guards))
        await mailbox.collect()
        await program_runs.record(ctx, run)
        return run

    async def _supervise(
        self, ctx: RunContext, folder: Folder, call: ToolCall, guards: Mapping[str, Guard]
    ) -> CommandResult:
        named = self.commands.get(ctx.agent.command or "")
        node = ctx.home.node_path(ctx.team.id, ctx.node.id)
        watch = _Watch(ctx, folder)
        async with prepared(ctx, call, named, guards) as setup:
            running = asyncio.ensure_future(
                commands.run(
                    program_runs.spool(ctx, call),
                    command=setup.command,
                    cwd=node / "scratch",
                    timeout=_seconds(ctx),
                    env=setup.env,
                    spec=setup.spec,
                    limits=ctx.command_rules.limits,
                    team=ctx.team.id,
                    on_output=watch.add_output,
                    serve=setup.serve,
                )
            )
            await watch.follow(running)
        if not running.cancelled():
            return running.result()
        # Ended by `is_over`: the result is complete, and the supervisor's
        # spool has how the run ended.
        ended = await asyncio.to_thread(commands.resolve, program_runs.spool(ctx, call))
        assert ended is not None
        return ended


class _Watch:
    """Watches a running program: carries its mail, shows its output, notices when it is done."""

    def __init__(self, ctx: RunContext, folder: Folder) -> None:
        self._ctx = ctx
        self._folder = folder
        self._mailbox = ProgramMailbox(ctx, folder)
        self._output, self._bytes = b"", 0
        self._seen_bytes = 0
        self._silent_s = self._lingering_s = self._since_event_s = 0.0
        self._pause_s = POLL_S
        self._result = ""

    @property
    def is_over(self) -> bool:
        """Whether the program should be ended, because its result is complete."""
        return self._lingering_s >= LINGER_S

    async def follow(self, running: asyncio.Future[CommandResult]) -> None:
        """Watch until the program has ended, or its result is complete; then end it."""
        try:
            while not running.done() and not self.is_over:
                await asyncio.wait({running}, timeout=POLL_S)
                with suppress(StoreUnavailable):  # the next poll tries again; the program runs on
                    await self.poll(last=running.done())
        finally:
            # `commands.run` kills the whole process tree before its cancellation ends.
            running.cancel()
            await asyncio.wait({running})

    def add_output(self, piece: bytes) -> None:
        self._output = (self._output + piece)[-OUTPUT_BYTES:]
        self._bytes += len(piece)

    async def poll(self, *, last: bool) -> None:
        """Read the result and the outbox, deliver mail, and report output or silence."""
        result = await asyncio.to_thread(_read_result, self._folder)
        # A program may write its result in pieces: the time runs only while the text is unchanged.
        is_settled = result and result == self._result
        self._lingering_s = self._lingering_s + POLL_S if is_settled else 0.0
        self._result = result
        # A program that has ended, or that this poll ends, reads no inbox. Mail that came too late
        # for it stays unseen, so that it becomes the agent's next task. What is left in its outbox
        # is sent by `collect`.
        if not last and not self.is_over:
            await self._mailbox.exchange()
        self._silent_s = 0.0 if self._bytes > self._seen_bytes else self._silent_s + POLL_S
        self._seen_bytes = self._bytes
        await self._show_output(last)
        if self._silent_s >= timers.STALLED_AFTER_SECONDS:
            self._silent_s = 0.0
            await self._ctx.store.write(timers.report, self._ctx.node.id)

    async def _show_output(self, last: bool) -> None:
        """Emit the output since the last event: at once, then at growing intervals."""
        self._since_event_s += POLL_S
        if self._bytes == 0 or (self._since_event_s < self._pause_s and not last):
            return
        output, size = self._output, self._bytes
        self._output, self._bytes, self._seen_bytes, self._since_event_s = b"", 0, 0, 0.0
        self._pause_s = min(self._pause_s * BACKOFF, LONGEST_PAUSE_S)
        text = output.decode(errors="replace").replace("\0", NO_TEXT)
        await self._ctx.store.write(_emit_output, self._ctx.lease, text, size)


def _emit_output(tx: Tx, lease: Lease, text: str, size: int) -> None:
    threads.check_lease(tx, lease)
    tx.emit(lease.team_id, NodeOutput(node_id=lease.node_id, text=text, bytes=size))
    # Output is a sign of life, although it writes no turn.
    if NODES.get(tx, lease.node_id).stalled_at is not None:
        NODES.update(tx, lease.node_id, stalled_at=None)


def _seconds(ctx: RunContext) -> float:
    left = ctx.seconds_left
    return DEFAULT_LIMIT_S if left is None else max(left, SHORTEST_LIMIT_S)


def _write_task(ctx: RunContext, folder: Folder) -> None:
    """Write the task and its context. Other files of an earlier run stay, except its result."""
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
        "attempt": len(program_runs.started_runs(own)) + 1,
        "acceptance": list(ctx.node.acceptance),
        "refs": {name: str(team / path) for name, path in ctx.node.refs.items()},
        "earlier": [str(team / "nodes" / node / "published") for node in earlier if node],
    }
    folder.write(CONTEXT, orjson.dumps(about, option=orjson.OPT_INDENT_2))
    with suppress(NotFound):
        # A result of an earlier run would count as this one's.
        folder.remove(RESULT)


async def _outcome(ctx: RunContext, folder: Folder, run: Run, *, cut_off: bool = False) -> Outcome:
    """Have the result file reviewed if it needs a review, and publish it.

    Only that file decides; an exit code is a doubt at most.
    """
    result_text = await asyncio.to_thread(_read_result, folder)
    if not result_text:
        return _no_result(run.result)
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    await asyncio.to_thread(_move_mail_files, folder, node.folder)
    found: list[str] = []
    if run.result.ended == "exited" and run.result.exit_code != 0:
        # The creator reads the doubt and judges; many programs exit with an error after good work.
        found.append(f"its command ended with exit code {run.result.exit_code}")
    if cut_off:
        found.append(f"its command was cut off with the runtime: {RESULT} may not be complete")
    files = await asyncio.to_thread(lambda: {entry.name: "" for entry in folder.walk()})
    evidence = _evidence(ctx.node)
    doubts = [_doubt(words) for words in found]
    doubts += acceptance.missing_evidence(ctx, ctx.node, files, evidence)

    async def publish(found: Sequence[Doubt]) -> Answer:
        manifest: dict[str, str] = {}
        try:
            manifest = await asyncio.to_thread(node.publish, result_text)
        except Refused as error:
            found = [*found, _doubt(f"its files could not be published: {error}")]
        return Done("", Finished(result_text, StopReason.PUBLISHED, manifest, tuple(found)))

    return await submit(ctx, run.call, result_text, evidence, doubts, publish)


def _doubt(words: str) -> Doubt:
    return Doubt(kind="program", words=words)


def _evidence(node: WorkNode) -> list[str]:
    """Return the result file as evidence for each line; only a line of the kind `file` can be
    proved by it, and all others are for somebody's judgement."""
    kinds = [node.line_kinds.get(line) for line in node.lines_to_prove]
    return [f"file:{RESULT}" if kind == "file" else RESULT for kind in kinds]


def _read_result(folder: Folder) -> str:
    try:
        text = folder.read(RESULT, limit=4 * RESULT_CHARACTERS).decode(errors="replace")
    except Refused:
        return ""
    text = text.replace("\0", NO_TEXT).strip()
    if len(text) <= RESULT_CHARACTERS:
        return text
    return f"{text[:RESULT_CHARACTERS]}\n… (this is the beginning; the whole text is in {RESULT})"


def _no_result(result: CommandResult) -> Failed:
    last = program_runs.tail(result)
    ending = program_runs.ending(result)
    if result.ended == "timed_out":
        return Failed(StopReason.TIME_SPENT, f"The command ran out of time {ending}.{last}")
    return Failed(
        StopReason.NO_RESULT, f"The command ended without writing {RESULT} {ending}.{last}"
    )


async def _publish_partial(ctx: RunContext, folder: Folder, failed: Failed) -> Failed:
    """Publish the files of a program that was cut off, as a partial result."""
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    try:
        await asyncio.to_thread(_move_mail_files, folder, node.folder)
        manifest = await asyncio.to_thread(node.publish, failed.detail, partial=True)
    except Refused as error:
        where = f"nodes/{ctx.node.id}/scratch, because they could not be published: {error}"
        return Failed(failed.reason, f"{failed.detail} Its files so far are in {where}")
    where = f"Its files so far are in nodes/{ctx.node.id}/published."
    return Failed(failed.reason, f"{failed.detail} {where}", manifest=manifest)


def _move_mail_files(scratch: Folder, node: Folder) -> None:
    """Move the task, context and mail files out of scratch/, so that they are not published."""
    for name in (TASK, CONTEXT, INBOX, OUTBOX):
        with suppress(Refused):  # the program removed it or made a folder of it
            node.write(name, scratch.read(name, limit=OUTBOX_BYTES), synced=False)
            scratch.remove(name)


async def submit(
    ctx: RunContext,
    run: ToolCall,
    result: str,
    evidence: Sequence[str],
    doubts: Sequence[Doubt],
    publish: Publish,
) -> Outcome:
    """Return the end of a node whose program wrote this result, or the wait for its review.

    When the review has ended, the node is claimed again and submits the same result.
    """
    call = ToolCall(id=f"review-{run.id}", name="command")
    if (waiting_on := ctx.parked_calls.get(call.id)) is not None:
        return Parked((waiting_on,))
    ctx.current_call_id = call.id
    answer = await work.judged(
        ctx, result, evidence, doubts, publish, ending="publish", can_rework=False
    )
    if isinstance(answer, InTransaction):
        answer = await _begin(ctx, call, answer)
    match answer:
        case Pending(waiting_on, reason):
            return Parked((waiting_on,), reason)
        case _ if answer.outcome is not None:
            return answer.outcome
        case _:  # the review ended while it was looked for
            return await submit(ctx, run, result, evidence, doubts, publish)


async def _begin(ctx: RunContext, call: ToolCall, begin: InTransaction) -> Answer:
    """Begin the review. The wait for it commits with its node."""
    try:
        answer, turns = await ctx.store.write(journal.begin_wait, ctx.lease, call, begin.act)
    except Refused as refusal:
        return await begin.if_refused(refusal)
    ctx.add_turns(*turns)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What a program is started with: command, environment, sandbox, and its network gate."""

    command: str
    env: Mapping[str, str]
    spec: Spec | None
    serve: Serve | None


@asynccontextmanager
async def prepared(
    ctx: RunContext, call: ToolCall, named: Command | None, guards: Mapping[str, Guard]
) -> AsyncGenerator[SetUp]:
    """Yield how the agent's program is started. One that the settings name, and that we know, gets
    the person's sign-in; a renewed one is taken back at the end.

    `named` is None for a command that a model wrote. `guards` say what it may not change of given
    folders.
    """
    command = named.command if named else ctx.agent.command or ""
    given = dict(named.environment) if named else None
    allowed = None if named else await private_sends.bounds(ctx, command)
    gate = await command_gate.of_program(ctx, call, command, given, allowed)
    home = shell.home_of_command(ctx)
    name = vendors.program_of(command) if named else ""
    lent = await asyncio.to_thread(program_credentials.lend, name, Path.home(), home)
    preset: Mapping[str, str] = PRESETS[name].environment if name in PRESETS else {}
    spec = shell.spec(ctx, network="gate" if gate.is_open else "none", guards=guards)
    try:
        yield SetUp(
            command=command,
            env=commands.child_environment(home, {**preset, **(given or {}), **gate.environment}),
            spec=spec if named is None else _with_program(spec, command),
            serve=gate.serve,
        )
    finally:
        await gate.close()
        await asyncio.to_thread(program_credentials.take_back, lent)


def _with_program(spec: Spec | None, command: str) -> Spec | None:
    """Show a program of the settings its own files, which may lie in the home of a person."""
    if spec is None:
        return None
    path = os.environ.get("PATH", "")
    folders = program_credentials.folders_of(executable_of(command), path)
    # A program that lies in a home itself must not show the whole of it.
    shown = (one for one in folders if not Path.home().is_relative_to(one) and not _is_system(one))
    mounts = (Mount(source=folder, target=folder) for folder in shown)
    return replace(spec, mounts=(*mounts, *spec.mounts))


def _is_system(folder: Path) -> bool:
    return any(folder.is_relative_to(path) for path in SYSTEM)
