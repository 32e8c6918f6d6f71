"""Command line: a program that works as a teammate, with files to talk through.

It finds its task in `_task.md`, hears through `_inbox.md`, speaks through `_outbox.md` and hands in
with `_result.md`. Its processes end with it, with its time, with a cancel and with the runtime.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Any

import orjson

from agiraph.domain.chat import Lease, ToolCall
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import HUMAN, SYSTEM
from agiraph.domain.outcomes import Done, Failed, Finished, Outcome
from agiraph.domain.work import StopReason
from agiraph.home import commands
from agiraph.home.beneath import Folder
from agiraph.home.commands import CommandResult
from agiraph.prompts import prompt
from agiraph.runtime.calls import Halted
from agiraph.services import journal, mail, people, stalls
from agiraph.store import messages, nodes, teams, threads
from agiraph.store.tx import Tx
from agiraph.tools.base import NO_TEXT
from agiraph.tools.context import RunContext

TASK, CONTEXT, INBOX, OUTBOX, RESULT = (
    "_task.md", "_context.json", "_inbox.md", "_outbox.md", "_result.md",
)  # fmt: skip
LOOK_SECONDS = 0.25
"""How often the files are looked at while the program runs."""
LINGER_SECONDS = 10.0
"""How long a program may go on once its result is there."""
LONGEST_SECONDS = 3600.0
"""How long it may take if its node does not say."""
LONGEST_RESULT = 20_000
OUTPUT_SHOWN = 4000
LONGEST_OUTBOX = 1024 * 1024

_ADDRESSED = re.compile(r"@([\w.*-]+):?[ \t]+(.*)")


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
            result = await _handed_in_before(ctx, folder)
            if result is None:
                result = await self._attempt(ctx, folder)
            outcome = await _outcome(ctx, folder, result)
        if isinstance(outcome, Finished):
            await ctx.store.write(journal.end, ctx.lease, outcome)
        return outcome

    async def _attempt(self, ctx: RunContext, folder: Folder) -> CommandResult:
        attempt = ToolCall(id=f"run-{ctx.node.attempt}", name="command")
        await asyncio.to_thread(_lay_out, ctx, folder)
        if ctx.transcript.intent(attempt.id) is None:
            known = {"command": ctx.agent.command or "", "seconds": _seconds(ctx)}
            ctx.heard(await ctx.store.write(journal.intend, ctx.lease, attempt, known))
        try:
            result = await self._supervise(ctx, folder, attempt)
        finally:
            await asyncio.shield(_Post(ctx, folder).exchange(last=True))
        shown = Done(
            f"{_ending(result)}\n{_output(result)}".rstrip(), failed=bool(result.exit_code)
        )
        await ctx.store.write(journal.answer, ctx.lease, [(attempt, shown)])
        return result

    async def _supervise(self, ctx: RunContext, folder: Folder, run: ToolCall) -> CommandResult:
        named = self.commands.get(ctx.agent.command or "")
        node = ctx.home.node_path(ctx.team.id, ctx.node.id)
        said: list[bytes] = []
        running = asyncio.ensure_future(
            commands.run(
                ctx.home.spool(f"{ctx.lease.thread_id}-{run.id}"),
                command=named.command if named else ctx.agent.command or "",
                cwd=node / "scratch",
                timeout=_seconds(ctx),
                env=commands.child_environment(node, named.environment if named else {}),
                on_output=said.append,
            )
        )
        post, quiet = _Post(ctx, folder), 0.0
        lingers = 0.0
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
                await post.exchange()
                heard = await _tell(ctx, said)
                quiet = 0.0 if heard else quiet + LOOK_SECONDS
                if quiet >= stalls.AFTER_SECONDS:
                    await ctx.store.write(stalls.note, ctx.node.id)
                lingers = lingers + LOOK_SECONDS if folder.exists(RESULT) else 0.0
                if lingers >= LINGER_SECONDS:
                    break
        finally:
            # Cancelled, it ends its whole process tree before it lets go.
            running.cancel()
            await asyncio.wait({running})
        await _tell(ctx, said)
        if not running.cancelled():
            return running.result()
        ended = await asyncio.to_thread(
            commands.resolve, ctx.home.spool(f"{ctx.lease.thread_id}-{run.id}")
        )
        assert ended is not None
        return ended


def _seconds(ctx: RunContext) -> float:
    return ctx.node.budget.seconds or LONGEST_SECONDS


def _lay_out(ctx: RunContext, folder: Folder) -> None:
    """Write the task and what is known so far; what an earlier attempt left stays."""
    assignment = next(t.text for t in ctx.transcript.turns if t.ref == "assignment")
    words = Template(prompt("cli_task")).substitute(assignment=assignment)
    folder.write(TASK, words.encode(errors="replace"))
    about: dict[str, Any] = {
        "team": {"id": ctx.team.id, "goal": ctx.team.goal},
        "agent": ctx.agent.name,
        "node": ctx.node.id,
        "attempt": ctx.node.attempt,
        "acceptance": list(ctx.node.acceptance),
        "refs": {
            name: str(ctx.home.path / "teams" / ctx.team.id / path)
            for name, path in ctx.node.refs.items()
        },
    }
    folder.write(CONTEXT, orjson.dumps(about, option=orjson.OPT_INDENT_2))
    heard = [t.text for t in ctx.transcript.turns if (t.ref or "").startswith("msg_")]
    folder.write(INBOX, "".join(f"{text}\n\n" for text in heard).encode(errors="replace"))
    folder.begin(OUTBOX, b"\n")


class _Post:
    """Carries messages between the team and the program's files, each once."""

    def __init__(self, ctx: RunContext, folder: Folder) -> None:
        self._ctx = ctx
        self._folder = folder

    async def exchange(self, *, last: bool = False) -> None:
        ctx = self._ctx
        news = await ctx.store.read(nodes.news, ctx.node.id)
        if news.halt == "cancel" and not last:
            raise Halted(news.halt)
        if news.mail and not last:
            heard = await ctx.store.write(_hear, ctx.lease)
            if heard:
                text = "".join(f"{said}\n\n" for said in heard)
                await asyncio.to_thread(self._folder.append, INBOX, text.encode(errors="replace"))
        await self._carry_out(last)

    async def _carry_out(self, last: bool) -> None:
        try:
            data = await asyncio.to_thread(self._folder.read, OUTBOX, limit=LONGEST_OUTBOX)
        except Refused:
            return
        end = len(data) if last else data.rfind(b"\n") + 1
        start = _carried(self._ctx)
        if end <= start:
            return
        said = data[start:end].decode(errors="replace").replace("\0", NO_TEXT)
        turn = await self._ctx.store.write(_speak, self._ctx.lease, said, end)
        self._ctx.heard(turn)


def _carried(ctx: RunContext) -> int:
    """How far the outbox was read before."""
    ends = [t.ref for t in ctx.transcript.turns if t.ref and t.ref.startswith("outbox:")]
    return int(ends[-1].removeprefix("outbox:")) if ends else 0


def _hear(tx: Tx, lease: Lease) -> list[str]:
    unseen = messages.unseen(tx, lease.agent_id)
    page = threads.hold(tx, lease)
    said: list[str] = []
    for message in unseen:
        text = mail.as_heard(tx, message)
        page, _ = threads.append(
            tx, page, node_id=lease.node_id, role="user", ref=message.id, text=text
        )
        said.append(text)
    messages.mark_seen(tx, [m.id for m in unseen])
    if unseen:
        tx.emit(lease.team_id, "message.seen", message_ids=[m.id for m in unseen])
    return said


def _speak(tx: Tx, lease: Lease, said: str, end: int) -> Any:
    page = threads.hold(tx, lease)
    giver = nodes.NODES.get(tx, lease.node_id).creator_id
    for to, text in addressed(said):
        _send(tx, lease, to or ("" if giver == SYSTEM else giver), text)
    ref = f"outbox:{end}"
    _, turn = threads.append(tx, page, node_id=lease.node_id, role="user", ref=ref, text=said)
    return turn


def _send(tx: Tx, lease: Lease, to: str, text: str) -> None:
    if to.lower() in (people.EVERYONE, "*"):
        mail.broadcast(tx, team_id=lease.team_id, sender=lease.agent_id, text=text)
        return
    recipient = HUMAN
    if to and to.lower() != HUMAN:
        try:
            recipient = teams.by_name(tx, lease.team_id, to).id
        except NotFound:
            text = f"(to {to}, whom nobody knows) {text}"
    if recipient == lease.agent_id:
        return
    try:
        hops = 0 if recipient == HUMAN else mail.hops_to(tx, lease, recipient)
    except Refused:
        return  # they have talked enough; it is in the thread all the same
    mail.send(
        tx,
        team_id=lease.team_id,
        sender=lease.agent_id,
        recipient=recipient,
        text=text,
        node_id=lease.node_id,
        hops=hops,
    )


def addressed(said: str) -> list[tuple[str, str]]:
    """What stands in an outbox: to whom, and what; nobody named means whoever gave the task."""
    found: list[tuple[str, list[str]]] = []
    for line in said.splitlines():
        if match := _ADDRESSED.fullmatch(line):
            found.append((match[1], [match[2]]))
        elif found:
            found[-1][1].append(line)
        elif line.strip():
            found.append(("", [line]))
    return [(to, text) for to, lines in found if (text := "\n".join(lines).strip())]


async def _tell(ctx: RunContext, said: list[bytes]) -> bool:
    """What the program printed since, as an event; whether there was anything."""
    data = b"".join(said)
    said.clear()
    if not data:
        return False
    text = data[-OUTPUT_SHOWN:].decode(errors="replace").replace("\0", NO_TEXT)
    await ctx.store.write(_emit_output, ctx.lease, text, len(data))
    return True


def _emit_output(tx: Tx, lease: Lease, text: str, size: int) -> None:
    threads.hold(tx, lease)
    tx.emit(lease.team_id, "node.output", node_id=lease.node_id, text=text, bytes=size)


async def _handed_in_before(ctx: RunContext, folder: Folder) -> CommandResult | None:
    """How an attempt ended that handed in, but whose end was not written down."""
    begun = [t.ref for t in ctx.transcript.turns if t.role == "intent" and t.node_id == ctx.node.id]
    if not begun or not await asyncio.to_thread(_handed_in, folder):
        return None
    spool = ctx.home.spool(f"{ctx.lease.thread_id}-{begun[-1]}")
    return await asyncio.to_thread(commands.resolve, spool)


async def _outcome(ctx: RunContext, folder: Folder, result: CommandResult) -> Outcome:
    """A result counts, and nothing else: least of all an exit code."""
    handed_in = await asyncio.to_thread(_handed_in, folder)
    if not handed_in:
        return _nothing(result)
    node = ctx.home.team(ctx.team.id).node(ctx.node.id)
    await asyncio.to_thread(_clear_up, folder, node.folder)
    manifest = await asyncio.to_thread(node.publish, handed_in)
    doubts = None
    if result.ended == "exited" and result.exit_code != 0:
        doubts = f"its command ended with exit code {result.exit_code}"
    return Finished(handed_in, StopReason.PUBLISHED, manifest, doubts)


def _ending(result: CommandResult) -> str:
    return f"[{result.ended}, exit code {result.exit_code}, {result.seconds:.0f} s]"


def _output(result: CommandResult) -> str:
    return result.output.replace("\0", NO_TEXT)


def _handed_in(folder: Folder) -> str:
    try:
        text = folder.read(RESULT, limit=4 * LONGEST_RESULT).decode(errors="replace")
    except Refused:
        return ""
    return text.replace("\0", NO_TEXT).strip()[:LONGEST_RESULT]


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
        if scratch.exists(name):
            node.write(name, scratch.read(name, limit=LONGEST_OUTBOX), synced=False)
            scratch.remove(name)
