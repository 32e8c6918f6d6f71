"""Program mailbox: carries messages between a team and a program's `_inbox.md` and `_outbox.md`.

Each message is carried once: a message and the record that it was carried commit together.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress

from agiraph.core.domain.chat import Lease, OutboxMark, Turn
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.mail import MessageSeen
from agiraph.core.domain.ids import SYSTEM, PersonId
from agiraph.core.domain.persons import is_person, means_a_person
from agiraph.core.domain.text.plurals import counted
from agiraph.core.home.safe_folder import Folder
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import Halted
from agiraph.core.services.board import planning
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import messages, nodes, teams, threads
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import NO_TEXT

INBOX, OUTBOX = "_inbox.md", "_outbox.md"
OUTBOX_BYTES = 1024 * 1024
"""Bytes of an outbox that are read; the rest is ignored."""
PIECE_BYTES = 64 * 1024
"""Bytes that one transaction carries: less than a message may hold."""
MAX_MESSAGES = 50
"""Messages that are sent from one piece; the rest stays in the thread."""

_ADDRESSED = re.compile(r"@([\w.*-]+)(?::[ \t]*|[ \t]+)(.*)")

Outgoing = list[tuple[str, str]]
"""Recipient and text of each message; an empty recipient is the giver of the task."""


class ProgramMailbox:
    """The mail files of one program. The thread records up to which byte the outbox was sent."""

    def __init__(self, ctx: RunContext, folder: Folder) -> None:
        self._ctx = ctx
        self._folder = folder

    def write_files(self) -> None:
        """Write the inbox from the thread, and create the outbox if there is none."""
        delivered = [t.text for t in own_turns(self._ctx) if t.key.startswith("msg_")]
        self._folder.write(INBOX, _as_inbox(delivered))
        self._folder.write_if_empty(OUTBOX, b"")

    async def exchange(self) -> None:
        """Deliver new mail to the inbox and send whole lines of the outbox.

        Raises `Halted` for a cancel.
        """
        ctx = self._ctx
        news = await ctx.store.read(nodes.news, ctx.node.id)
        if news.halt == "cancel":
            raise Halted(news.halt)
        if news.mail:
            texts, turns = await ctx.store.write(_deliver, ctx.lease)
            ctx.add_turns(*turns)
            # A crash before this append loses nothing: `write_files` makes the
            # inbox anew from the thread.
            with suppress(Refused):  # the program replaced its inbox by something else
                await asyncio.to_thread(self._folder.append, INBOX, _as_inbox(texts))
        await self._send_next(whole_lines=True)

    async def collect(self) -> None:
        """Send the rest of the outbox after the program has ended, with an unfinished last line."""
        while await self._send_next(whole_lines=False):
            pass

    async def _send_next(self, *, whole_lines: bool) -> bool:
        """Send the next piece of the outbox; return whether there was one."""
        try:
            data = await asyncio.to_thread(self._folder.read, OUTBOX, limit=OUTBOX_BYTES)
        except Refused:
            return False
        data = data[: data.rfind(b"\n") + 1] if whole_lines else data
        start = _carried_bytes(self._ctx, data)
        piece = data[start : start + PIECE_BYTES]
        if start + len(piece) < len(data):
            # At the end of a line, if there is one: a message must not be cut in two.
            piece = piece[: piece.rfind(b"\n") + 1] or piece
        if not piece.strip():
            return False
        seen = data[: start + len(piece)]
        outgoing = addressed(seen, start)
        ctx = self._ctx
        ctx.add_turns(await ctx.store.write(_send_all, ctx.lease, outgoing, seen, start))
        return True


def addressed(outbox: bytes, start: int = 0) -> Outgoing:
    """Return the messages in an outbox from byte `start` on.

    A line without a name goes to the recipient of the line before it, also if that line was read
    earlier: where the poll happens to cut the file must not change a recipient.
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
    """Return the turns of this node; a resumed task shares its thread with an earlier node."""
    return [turn for turn in ctx.transcript.turns if turn.node_id == ctx.node.id]


def _carried_bytes(ctx: RunContext, data: bytes) -> int:
    """Return how many bytes of the outbox were carried; 0 if the program has rewritten it."""
    for turn in reversed(own_turns(ctx)):
        if (seen := turn.outbox) is not None:
            # The hash of what was carried: a program that rewrites its outbox begins a new one.
            return seen.end if _digest(data[: seen.end]) == seen.sha256 else 0
    return 0


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _lines(data: bytes) -> list[str]:
    return [_text(line) for line in data.splitlines()]


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", NO_TEXT)


def _as_inbox(texts: Sequence[str]) -> bytes:
    return "".join(f"{text}\n\n" for text in texts).encode(errors="replace")


def _deliver(tx: Tx, lease: Lease) -> tuple[list[str], list[Turn]]:
    unseen = messages.unseen(tx, lease.agent_id, node_id=lease.node_id)
    append_at = threads.check_lease(tx, lease)
    turns: list[Turn] = []
    for message in unseen:
        text = bus.thread_text(tx, message, lease.thread_id)
        append_at, turn = threads.append(
            tx,
            append_at,
            node_id=lease.node_id,
            role="user",
            ref=message.id,
            text=text,
            label=message.label,
        )
        turns.append(turn)
    messages.mark_seen(tx, [m.id for m in unseen])
    if unseen:
        tx.emit(lease.team_id, MessageSeen(message_ids=[m.id for m in unseen]))
    return [turn.text for turn in turns], turns


def _send_all(tx: Tx, lease: Lease, outgoing: Outgoing, seen: bytes, start: int) -> Turn:
    """Send the messages and record how far the outbox was carried, in one transaction."""
    append_at = threads.check_lease(tx, lease)
    for number, (to, text) in enumerate(outgoing[:MAX_MESSAGES], start=1):
        if number == MAX_MESSAGES < len(outgoing):
            left = len(outgoing) - number
            text += (
                f"\n({counted(left, 'more message stands', 'more messages stand')} in its thread.)"
            )
        _send(tx, lease, to, text)
    _, turn = threads.append(
        tx,
        append_at,
        node_id=lease.node_id,
        role="user",
        ref=f"outbox:{len(seen)}",
        text=_text(seen[start:]),
        outbox=OutboxMark(end=len(seen), sha256=_digest(seen)),
    )
    return turn


def _send(tx: Tx, lease: Lease, to: str, text: str) -> None:
    if to.lower() in (roster.EVERYONE, "*"):
        hops = nodes.NODES.get(tx, lease.node_id).hops + 1
        bus.broadcast(tx, bus.from_work(lease, to, text, hops=hops))
        return
    try:
        recipient = _recipient(tx, lease, to)
    except NotFound:
        recipient, text = _person_for(tx, lease), f"(to {to}, whom nobody knows) {text}"
    if recipient == lease.agent_id:
        return
    try:
        hops = 0 if is_person(recipient) else bus.next_hops(tx, lease, recipient)
    except Refused:
        return  # the two have reached the limit of messages; the text stays in the thread
    bus.send(tx, bus.from_work(lease, recipient, text, hops=hops))


def _recipient(tx: Tx, lease: Lease, to: str) -> str:
    if to:
        if means_a_person(to):
            return _person_for(tx, lease)
        return teams.by_name(tx, lease.team_id, to).id
    giver = nodes.NODES.get(tx, lease.node_id).creator_id
    if is_person(giver) or giver == SYSTEM or _has_left(tx, giver):
        return _person_for(tx, lease)
    return giver


def _has_left(tx: Tx, agent_id: str) -> bool:
    return teams.AGENTS.get(tx, agent_id).retired_at is not None


def _person_for(tx: Tx, lease: Lease) -> PersonId:
    return planning.person_for(tx, nodes.NODES.get(tx, lease.node_id))
