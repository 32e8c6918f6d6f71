"""Post: carries messages between a team and a program's `_inbox.md` and `_outbox.md`, each once."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress

from agiraph.domain.chat import Lease, Turn
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.ids import HUMAN, SYSTEM
from agiraph.home.safe_folder import Folder
from agiraph.runtime.calls import Halted
from agiraph.services.board import taint
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.store import messages, nodes, teams, threads
from agiraph.store.tx import Tx
from agiraph.tools.base import NO_TEXT
from agiraph.tools.context import RunContext

INBOX, OUTBOX = "_inbox.md", "_outbox.md"
LONGEST_OUTBOX = 1024 * 1024
"""What of an outbox is carried, in bytes: a program that writes more is not talking."""
PIECE = 64 * 1024
"""What of it is carried at once; less than a message may hold."""
MOST_AT_ONCE = 50
"""Messages from one piece; the rest stays in the thread."""

_CARRIED = "outbox:"
_ADDRESSED = re.compile(r"@([\w.*-]+)(?::[ \t]*|[ \t]+)(.*)")

Said = list[tuple[str, str]]
"""To whom, and what; nobody named means whoever gave the task."""


class Post:
    """What the thread says was carried is not carried again, whoever looks."""

    def __init__(self, ctx: RunContext, folder: Folder) -> None:
        self._ctx = ctx
        self._folder = folder

    def lay_out(self) -> None:
        """The files as the thread knows them: what was heard; what was said stays."""
        heard = [t.text for t in own_turns(self._ctx) if (t.ref or "").startswith("msg_")]
        self._folder.write(INBOX, _as_inbox(heard))
        self._folder.begin(OUTBOX, b"")

    async def exchange(self) -> None:
        """Bring in what was said to the program and carry out what it said: whole lines."""
        ctx = self._ctx
        news = await ctx.store.read(nodes.news, ctx.node.id)
        if news.halt == "cancel":
            raise Halted(news.halt)
        if news.mail:
            heard, turns = await ctx.store.write(_hear, ctx.lease)
            ctx.heard(*turns)
            with suppress(Refused):  # it made something else of its inbox
                await asyncio.to_thread(self._folder.append, INBOX, _as_inbox(heard))
        await self._carry_out(whole_lines=True)

    async def collect(self) -> None:
        """Carry out the last words of a program that has ended."""
        while await self._carry_out(whole_lines=False):
            pass

    async def _carry_out(self, *, whole_lines: bool) -> bool:
        try:
            data = await asyncio.to_thread(self._folder.read, OUTBOX, limit=LONGEST_OUTBOX)
        except Refused:
            return False
        data = data[: data.rfind(b"\n") + 1] if whole_lines else data
        start = _carried(self._ctx, data)
        piece = data[start : start + PIECE]
        if start + len(piece) < len(data):
            piece = piece[: piece.rfind(b"\n") + 1] or piece
        if not piece.strip():
            return False
        seen = data[: start + len(piece)]
        said = addressed(seen, start)
        self._ctx.heard(await self._ctx.store.write(_speak, self._ctx.lease, said, seen, start))
        return True


def addressed(outbox: bytes, start: int = 0) -> Said:
    """What stands in an outbox from there on.

    A line without a name goes where the line before it went: it must not matter whether both were
    seen at once.
    """
    before = [match[1] for line in _lines(outbox[:start]) if (match := _ADDRESSED.fullmatch(line))]
    found: list[tuple[str, list[str]]] = [(before[-1] if before else "", [])]
    for line in _lines(outbox[start:]):
        if match := _ADDRESSED.fullmatch(line):
            found.append((match[1], [match[2]]))
        else:
            found[-1][1].append(line)
    return [(to, text) for to, lines in found if (text := "\n".join(lines).strip())]


def own_turns(ctx: RunContext) -> list[Turn]:
    """The turns of this node; work that is taken up again shares its thread with earlier work."""
    return [turn for turn in ctx.transcript.turns if turn.node_id == ctx.node.id]


def _carried(ctx: RunContext, data: bytes) -> int:
    """How far the outbox was read before; not at all, if it was written anew since."""
    for turn in reversed(own_turns(ctx)):
        if (turn.ref or "").startswith(_CARRIED):
            end = int(turn.extra["end"])
            return end if _digest(data[:end]) == turn.extra["sha256"] else 0
    return 0


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _lines(data: bytes) -> list[str]:
    return [_text(line) for line in data.splitlines()]


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", NO_TEXT)


def _as_inbox(heard: Sequence[str]) -> bytes:
    return "".join(f"{text}\n\n" for text in heard).encode(errors="replace")


def _hear(tx: Tx, lease: Lease) -> tuple[list[str], list[Turn]]:
    unseen = messages.unseen(tx, lease.agent_id)
    page = threads.check_lease(tx, lease)
    turns: list[Turn] = []
    for message in unseen:
        text = bus.thread_text(tx, message)
        page, turn = threads.append(
            tx,
            page,
            node_id=lease.node_id,
            role="user",
            ref=message.id,
            text=text,
            extra=taint.extra(message.tainted_by),
        )
        turns.append(turn)
    messages.mark_seen(tx, [m.id for m in unseen])
    if unseen:
        tx.emit(lease.team_id, "message.seen", message_ids=[m.id for m in unseen])
    return [turn.text for turn in turns], turns


def _speak(tx: Tx, lease: Lease, said: Said, seen: bytes, start: int) -> Turn:
    """Send what was said, and write down how far the outbox was seen: together."""
    page = threads.check_lease(tx, lease)
    for number, (to, text) in enumerate(said[:MOST_AT_ONCE], start=1):
        if number == MOST_AT_ONCE < len(said):
            text += f"\n({len(said) - number} more messages stand in its thread.)"
        _send(tx, lease, to, text)
    _, turn = threads.append(
        tx,
        page,
        node_id=lease.node_id,
        role="user",
        ref=f"{_CARRIED}{len(seen)}",
        text=_text(seen[start:]),
        extra={"end": len(seen), "sha256": _digest(seen)},
    )
    return turn


def _send(tx: Tx, lease: Lease, to: str, text: str) -> None:
    if to.lower() in (roster.EVERYONE, "*"):
        hops = nodes.NODES.get(tx, lease.node_id).hops + 1
        bus.broadcast(
            tx,
            team_id=lease.team_id,
            sender=lease.agent_id,
            text=text,
            node_id=lease.node_id,
            hops=hops,
        )
        return
    try:
        recipient = _recipient(tx, lease, to)
    except NotFound:
        recipient, text = HUMAN, f"(to {to}, whom nobody knows) {text}"
    if recipient == lease.agent_id:
        return
    try:
        hops = 0 if recipient == HUMAN else bus.next_hops(tx, lease, recipient)
    except Refused:
        return  # they have talked enough; it is in the thread all the same
    bus.send(
        tx,
        team_id=lease.team_id,
        sender=lease.agent_id,
        recipient=recipient,
        text=text,
        node_id=lease.node_id,
        hops=hops,
    )


def _recipient(tx: Tx, lease: Lease, to: str) -> str:
    if to:
        return HUMAN if to.lower() == HUMAN else teams.by_name(tx, lease.team_id, to).id
    giver = nodes.NODES.get(tx, lease.node_id).creator_id
    if giver in (HUMAN, SYSTEM) or teams.AGENTS.get(tx, giver).retired_at is not None:
        return HUMAN
    return giver
