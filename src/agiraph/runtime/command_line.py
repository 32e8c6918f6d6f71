"""Command line: a program that works as a teammate, with files to talk through.

It finds its task in `_task.md`, hears through `_inbox.md`, speaks through `_outbox.md` and hands in
with `_result.md`. Its processes end with it, with its time, with a cancel and with the runtime. A
pause lets it work on to its end: it has no place to stop at.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import orjson

from agiraph.domain.chat import AGAIN, Lease, ToolCall, Turn
from agiraph.domain.errors import NotFound, Refused, StoreUnavailable
from agiraph.domain.outcomes import Answer, Done, Failed, Finished, Outcome, Parked, Pending
from agiraph.domain.taint import MARK, by_program
from agiraph.domain.taint import is_foreign as is_from_strangers
from agiraph.domain.work import RESULT_FILE, StopReason
from agiraph.home import commands
from agiraph.home.beneath import Folder
from agiraph.home.commands import CommandResult
from agiraph.policies.permission import PermissionPolicy, approve
from agiraph.prompts import prompt
from agiraph.runtime.post import INBOX, LONGEST_OUTBOX, OUTBOX, Post, own_turns
from agiraph.services import journal, stalls
from agiraph.store import threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.tools import proof
from agiraph.tools.base import NO_TEXT
from agiraph.tools.context import RunContext

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

_RUN = "run-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program by name, with what it may see of the environment."""

    command: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


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
                result = await _left_behind(ctx, folder) or await self._attempt(ctx, folder)
            except Refused as refused:
                return Failed(StopReason.NO_RESULT, f"The command cannot be run: {refused}")
            outcome = await _outcome(ctx, folder, result)
        if isinstance(outcome, Finished):
            await ctx.store.write(journal.end, ctx.lease, outcome)
        return outcome

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
        call = ToolCall(id="command", name="bash", arguments=arguments)
        policy = PermissionPolicy()
        answer = policy.settled(ctx, call)
        if answer is None and policy.needs_approval(ctx, call):

            def ask(tx: Tx) -> Answer:
                return approve(tx, ctx, call)

            answer, turns = await ctx.store.write(journal.weigh, ctx.lease, call, ask)
            ctx.heard(*turns)
        match answer:
            case Pending(waiting_on, reason):
                return Parked((waiting_on,), reason)
            case Done(text, failed=True):
                return Failed(StopReason.NO_RESULT, text)
            case _:
                return None

    async def _attempt(self, ctx: RunContext, folder: Folder) -> CommandResult:
        run = ToolCall(id=f"{_RUN}{len(_begun(ctx.transcript.turns)) + 1}", name="command")
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
        ctx.heard(await ctx.store.write(journal.intend, ctx.lease, run, known))
        result = await self._supervise(ctx, folder, run.id)
        await post.collect()
        said = f"{_ending(result)}\n{_output(result)}".rstrip()
        tainted_by = by_program(ctx.agent.name)
        answer = run, Done(said, failed=result.exit_code != 0, tainted_by=tainted_by)
        await ctx.store.write(journal.answer, ctx.lease, [answer])
        return result

    async def _supervise(self, ctx: RunContext, folder: Folder, run: str) -> CommandResult:
        named = self.commands.get(ctx.agent.command or "")
        node = ctx.home.node_path(ctx.team.id, ctx.node.id)
        watch = _Watch(ctx, folder)
        running = asyncio.ensure_future(
            commands.run(
                _spool(ctx, run),
                command=named.command if named else ctx.agent.command or "",
                cwd=node / "scratch",
                timeout=_seconds(ctx),
                env=commands.child_environment(node, named.environment if named else {}),
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
        ended = await asyncio.to_thread(commands.resolve, _spool(ctx, run))
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
        if self._quiet >= stalls.AFTER_SECONDS:
            self._quiet = 0.0
            await self._ctx.store.write(stalls.note, self._ctx.node.id)

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
    threads.hold(tx, lease)
    tx.emit(lease.team_id, "node.output", node_id=lease.node_id, text=text, bytes=size)
    if NODES.get(tx, lease.node_id).stalled_at is not None:
        NODES.update(tx, lease.node_id, stalled_at=None)


def _seconds(ctx: RunContext) -> float:
    left = ctx.seconds_left
    return LONGEST_SECONDS if left is None else max(left, SHORTEST_SECONDS)


def _spool(ctx: RunContext, run: str) -> Path:
    return ctx.home.spool(f"{ctx.lease.thread_id}-{run}")


def _begun(turns: list[Turn]) -> list[str]:
    """The runs that were begun: every one has a name and a spool of its own."""
    return [t.ref for t in turns if t.role == "intent" and t.ref and t.ref.startswith(_RUN)]


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
        "attempt": len(_begun(own)) + 1,
        "acceptance": list(ctx.node.acceptance),
        "refs": {name: str(team / path) for name, path in ctx.node.refs.items()},
        "earlier": [str(team / "nodes" / node / "published") for node in earlier if node],
    }
    folder.write(CONTEXT, orjson.dumps(about, option=orjson.OPT_INDENT_2))
    with suppress(NotFound):
        folder.remove(RESULT)


async def _left_behind(ctx: RunContext, folder: Folder) -> CommandResult | None:
    """How the run before this one ended, if that is what counts. Nothing of it is alive then."""
    own = own_turns(ctx)
    retried = max((n for n, t in enumerate(own) if (t.ref or "").startswith(AGAIN)), default=0)
    begun = _begun(own[retried:])
    if not begun:
        return None
    result = await asyncio.to_thread(commands.resolve, _spool(ctx, begun[-1]))
    if result is None:
        return None
    by_itself = result.ended in ("exited", "timed_out")
    return result if by_itself or await asyncio.to_thread(_handed_in, folder) else None


async def _outcome(ctx: RunContext, folder: Folder, result: CommandResult) -> Outcome:
    """A result counts, and nothing else: least of all an exit code."""
    handed_in = await asyncio.to_thread(_handed_in, folder)
    if not handed_in:
        return _nothing(result)
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    await asyncio.to_thread(_clear_up, folder, node.folder)
    doubts: list[str] = []
    if result.ended == "exited" and result.exit_code != 0:
        doubts.append(f"its command ended with exit code {result.exit_code}")
    manifest: dict[str, str] = {}
    try:
        manifest = await asyncio.to_thread(node.publish, handed_in)
    except Refused as error:
        doubts.append(f"its files could not be published: {error}")
    doubts += proof.lacks(ctx, manifest, [RESULT] * len(ctx.node.acceptance))
    return Finished(handed_in, StopReason.PUBLISHED, manifest, "; ".join(doubts) or None)


def _ending(result: CommandResult) -> str:
    return f"[{result.ended}, exit code {result.exit_code}, {result.seconds:.0f} s]"


def _output(result: CommandResult) -> str:
    return result.output.replace("\0", NO_TEXT)


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
    tail = _output(result)[-1000:].strip()
    last = f" Its last words: {tail}" if tail else " It printed nothing."
    ending = _ending(result)
    if result.ended == "timed_out":
        return Failed(StopReason.TIME_SPENT, f"The command ran out of time {ending}.{last}")
    return Failed(
        StopReason.NO_RESULT, f"The command ended without writing {RESULT} {ending}.{last}"
    )


def _clear_up(scratch: Folder, node: Folder) -> None:
    """What was only for talking is kept beside the result, not in it."""
    for name in (TASK, CONTEXT, INBOX, OUTBOX):
        with suppress(Refused):  # it was removed, or something else was made of it
            node.write(name, scratch.read(name, limit=LONGEST_OUTBOX), synced=False)
            scratch.remove(name)
