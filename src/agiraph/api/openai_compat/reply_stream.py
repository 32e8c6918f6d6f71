"""Reply stream: follows the reply to a client's turn while a model writes it.

The reply is written by the runtime, not here. A client that leaves ends this stream and nothing
else; when it sends the same request again, it gets the same reply.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from agiraph.api.deps import Api
from agiraph.api.live import Subscriber
from agiraph.domain import spoken
from agiraph.domain.ids import NodeId
from agiraph.domain.messages import Message
from agiraph.domain.value import value
from agiraph.domain.visible import visible
from agiraph.services.lifecycle import client_turns
from agiraph.services.lifecycle.client_turns import ClientReply
from agiraph.store.client_turns import ClientTurn
from agiraph.store.messages import MESSAGES

KEEP_ALIVE_S = 15.0
"""Between two comment lines in a stream without words: proxies close silent connections."""
LOST_POLL_S = 1.0
"""How often to look for the reply when a stream has lost track of its pieces."""
LONGEST_WAIT_S = 600.0
"""How long a request waits for the reply; the reply is written whether somebody waits or not."""
_ENDINGS = ("message.sent", "node.completed", "node.partial", "node.failed", "node.cancelled")
_THINKING = "<thinking>"


@value
class Text:
    """The next characters of the response."""

    text: str


@value
class Silence:
    """Nothing was written for a while."""


@value
class End:
    """The reply is complete."""

    reply: ClientReply


Piece = Text | Silence | End


class NoReplyYet(Exception):
    """The reply has not come within `LONGEST_WAIT_S`."""


async def follow(api: Api, turn: ClientTurn) -> AsyncGenerator[Piece]:
    """Yield the reports since the last turn, then the reply as it is written, then its end."""
    said = await api.store.read(MESSAGES.get, turn.message_id)
    if reports := await api.store.read(client_turns.reports, turn):
        yield Text(text=shown_reports(reports, api.url))
    words = _Words()
    async for frame in _frames(api, turn, said.reply_id):
        match frame:
            case ClientReply():
                if rest := words.rest(frame.text):
                    yield Text(text=rest)
                yield End(reply=frame)
                return
            case None:
                yield Silence()
            case _:
                if new := words.take(frame):
                    yield Text(text=new)


async def whole(api: Api, turn: ClientTurn) -> tuple[str, ClientReply]:
    """Wait for the reply; return the text with the reports before it, and the reply."""
    reports = await api.store.read(client_turns.reports, turn)
    async for piece in follow(api, turn):
        if isinstance(piece, End):
            return shown_reports(reports, api.url) + piece.reply.text, piece.reply
    raise NoReplyYet


def shown_reports(reports: list[Message], url: str) -> str:
    """Return what the agent has told the person meanwhile, as the beginning of a response."""
    return "".join(f"{_shown(report, url)}\n\n---\n\n" for report in reports)


def _shown(report: Message, url: str) -> str:
    head = f"**{report.kind.capitalize()}** ({report.created_at:%Y-%m-%d %H:%M} UTC)"
    parts = [f"{head}: {report.title}" if report.title else head, report.text]
    parts += [f"{number}. {option}" for number, option in enumerate(report.options, 1)]
    if report.kind == "approval":
        # Words never approve: the card shows the whole call.
        parts[1] = visible(report.text)
        parts.append(f"Decide in the inbox: {url}/inbox/{report.id}")
    if report.label:
        parts.append(f"(Holds words from {visible(str(report.label))}. Take care with its links.)")
    return "\n\n".join(parts)


class _Words:
    """What a client has been sent of a reply, and what is still to be sent of it.

    A model may look something up between two texts. Each text is sent as it is written; the last
    one counts, and its end may differ from what was streamed.
    """

    def __init__(self) -> None:
        self._text = ""
        """What the model has written of the current text."""
        self._shown = ""
        """What the client got of the current text."""
        self._last = ""
        """What the client got of the text before."""

    def take(self, frame: dict[str, Any]) -> str:
        """Return what to send after the next frame of the reply; empty: nothing."""
        if frame["op"] == "event":  # the model's turn is over; another text may follow
            self._last = self._shown or self._last
            self._text = self._shown = ""
            return ""
        self._text += frame["text"]
        if _THINKING.startswith(self._text.lstrip()[: len(_THINKING)].lower()):
            return ""  # a thought may begin here
        shown = spoken.for_person(self._text)
        if not shown.startswith(self._shown):
            return ""  # a part of it was taken back; `rest` sends what counts
        gap = "\n\n" if self._last and not self._shown else ""
        new, self._shown = shown[len(self._shown) :], shown
        return gap + new if new else ""

    def rest(self, final: str) -> str:
        """Return what is still to be sent when the reply is complete."""
        sent = self._shown or self._last
        if not sent or final.startswith(sent):
            return final[len(sent) :]
        return "" if final.split() == sent.split() else f"\n\n{final}"


async def _frames(
    api: Api, turn: ClientTurn, reply_id: NodeId | None
) -> AsyncGenerator[dict[str, Any] | ClientReply | None]:
    """Yield what belongs to a reply: pieces of text, ends of the model's turns, None for silence,
    and at last the reply itself."""
    subscriber = Subscriber({turn.team_id})
    api.hub.join(subscriber)
    try:
        # Without an await since the join: what was written before is here, what comes is queued.
        for draft in _drafts(api, turn, reply_id):
            yield draft
        async for frame in _news(api, turn, subscriber):
            if frame is None or _belongs(frame, reply_id):
                yield frame
        reply = await api.store.read(client_turns.reply, turn)
        if reply is None:
            raise NoReplyYet
        # The reply is stored, so no more of its frames will come.
        for frame in [f for f in subscriber.frames if _belongs(f, reply_id)]:
            yield frame
        yield reply
    finally:
        api.hub.leave(subscriber)


def _drafts(api: Api, turn: ClientTurn, reply_id: NodeId | None) -> list[dict[str, Any]]:
    """Return what a model has written of the reply so far."""
    found = api.hub.partial_replies({turn.team_id})
    return [{**draft, "op": "delta"} for draft in found if draft["node_id"] == reply_id]


async def _news(
    api: Api, turn: ClientTurn, subscriber: Subscriber
) -> AsyncGenerator[dict[str, Any] | None]:
    """Yield frames, None for silence, until the reply is stored or it takes too long."""
    now = asyncio.get_running_loop().time
    deadline = now() + LONGEST_WAIT_S
    while await api.store.read(client_turns.reply, turn) is None:
        frame: dict[str, Any] | None = None
        # Look at the rows again after each event that may have brought the reply, and after a
        # silence: another process may have written it unheard.
        while now() < deadline and not (subscriber.is_over or subscriber.is_lost):
            frame = await _next(subscriber)
            yield frame
            if frame is None or _may_end(frame):
                break
        if now() >= deadline or subscriber.is_over:
            return
        if subscriber.is_lost:  # its queue overflowed; the whole reply comes at the end
            await asyncio.sleep(LOST_POLL_S)


async def _next(subscriber: Subscriber) -> dict[str, Any] | None:
    """Return the next frame; None after a silence, or if the subscriber was too slow."""
    try:
        async with asyncio.timeout(KEEP_ALIVE_S):
            return await subscriber.take()
    except TimeoutError:
        return None


def _belongs(frame: dict[str, Any], reply_id: NodeId | None) -> bool:
    if frame["op"] == "delta":
        return frame["node_id"] == reply_id
    if frame["op"] != "event" or frame["event"]["type"] != "turn.added":
        return False
    return frame["event"]["data"]["node_id"] == reply_id


def _may_end(frame: dict[str, Any]) -> bool:
    return frame["op"] == "event" and frame["event"]["type"] in _ENDINGS
