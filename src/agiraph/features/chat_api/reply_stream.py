"""Reply stream: follows the reply to a client's turn while a model writes it, and gives it the
form of chat completions.

The reply is written by the runtime, not here. A client that leaves ends this stream and nothing
else; when it sends the same request again, it gets the same reply.
"""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

import orjson

from agiraph.api.deps import Api
from agiraph.api.live import Subscriber
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.text import fence, spoken
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Usage
from agiraph.core.store.messages import MESSAGES
from agiraph.features.chat_api import client_turns
from agiraph.features.chat_api.client_turns import ClientReply
from agiraph.features.chat_api.rows import ClientTurn

KEEP_ALIVE_S = 15.0
"""Seconds without text after which the stream sends an SSE comment: proxies close idle
connections."""
LOST_POLL_S = 1.0
"""Seconds between two looks for the stored reply, once the stream's queue of frames has
overflowed."""
LONGEST_WAIT_S = 600.0
"""Seconds after which an HTTP request stops waiting for the agent's reply. The agent still writes
it into the conversation."""
_ENDINGS = ("message.sent", "node.completed", "node.partial", "node.failed", "node.cancelled")
_THINKING = "<thinking>"
KEEP_ALIVE = b": still working\n\n"
_DONE = b"data: [DONE]\n\n"


class NoReplyYet(Exception):
    """The reply has not come within `LONGEST_WAIT_S`."""


async def follow(api: Api, turn: ClientTurn) -> AsyncGenerator[str | ClientReply | None]:
    """Yield what the client is sent: reports that the team finished since the client's previous
    request, and the words of the reply as the model writes them; None if no text came for
    `KEEP_ALIVE_S`; last the whole reply."""
    said = await api.store.read(MESSAGES.get, turn.message_id)
    if reports := await api.store.read(client_turns.reports, turn):
        yield shown_reports(reports, api.url)
    words = _StreamedText()
    async for frame in _frames(api, turn, said.reply_id):
        match frame:
            case ClientReply():
                if rest := words.rest(frame.text) + _did(frame):
                    yield rest
                yield frame
                return
            case None:
                yield None
            case _:
                if new := words.take(frame):
                    yield new


async def whole(api: Api, turn: ClientTurn) -> tuple[str, ClientReply]:
    """Wait for the reply; return it, and its text behind the reports that came before it."""
    reports = await api.store.read(client_turns.reports, turn)
    async for piece in follow(api, turn):
        if isinstance(piece, ClientReply):
            return shown_reports(reports, api.url) + piece.text + _did(piece), piece
    raise NoReplyYet


def _did(reply: ClientReply) -> str:
    return f"\n\n{reply.did}" if reply.did else ""


def shown_reports(reports: list[Message], url: str) -> str:
    """Return the agent's messages since the last turn as text that stands before the reply."""
    return "".join(f"{_shown(report, url)}\n\n---\n\n" for report in reports)


def _shown(report: Message, url: str) -> str:
    head = f"**{report.kind.capitalize()}** ({report.created_at:%Y-%m-%d %H:%M} UTC)"
    parts = [f"{head}: {report.title}" if report.title else head, report.full_text]
    parts += [f"{number}. {option}" for number, option in enumerate(report.options, 1)]
    if report.kind == "approval":
        # A chat message decides no approval; the card in the inbox does, and shows the whole call.
        parts[1] = visible(report.text)
        parts.append(f"Decide in the inbox: {url}/inbox/{report.id}")
    # Without clients: their own words are nothing new to them.
    strangers = report.label.without([s for s in report.label.sources if s.startswith("client:")])
    if strangers:
        parts.append(f"(Holds words from {visible(str(strangers))}. Take care with its links.)")
    return "\n\n".join(parts)


class _StreamedText:
    """The text of a reply that the client has been sent, and the text that it still has to be sent.

    Between two texts the model may call a tool. Each text is streamed as the model writes it. The
    stored reply is the last text, and its end may differ from what was streamed.
    """

    def __init__(self) -> None:
        self._text = ""
        """The current text as far as the model has written it."""
        self._shown = ""
        """The part of the current text that the client was sent."""
        self._last = ""
        """The part of the previous text that the client was sent."""

    def take(self, frame: dict[str, Any]) -> str:
        """Return the text to send after this frame; empty if there is none."""
        if frame["op"] == "event":  # the model's turn is over; another text may follow
            self._last = self._shown or self._last
            self._text = self._shown = ""
            return ""
        self._text += frame["text"]
        if _THINKING.startswith(self._text.lstrip()[: len(_THINKING)].lower()):
            return ""  # may be the beginning of a <thinking> block, which is not shown
        # Blank lines at the beginning are never sent: a text that is cleaned later loses them.
        shown = spoken.for_person(fence.without_open_mark(self._text.lstrip()))
        if not shown.startswith(self._shown):
            return ""  # the shown text lost a part; `rest` sends the stored reply
        gap = "\n\n" if self._last and not self._shown else ""
        new, self._shown = shown[len(self._shown) :], shown
        return gap + new if new else ""

    def rest(self, final: str) -> str:
        """Return the text that is still to be sent, given the stored reply."""
        sent, final = self._shown or self._last, final.lstrip()
        if not sent or final.startswith(sent):
            return final[len(sent) :]
        return "" if final.split() == sent.split() else f"\n\n{final}"


async def _frames(
    api: Api, turn: ClientTurn, reply_id: NodeId | None
) -> AsyncGenerator[dict[str, Any] | ClientReply | None]:
    """Yield the frames of one reply: pieces of text, ends of the model's turns, None after
    `KEEP_ALIVE_S` without a frame, and last the stored reply."""
    subscriber = Subscriber({turn.team_id})
    api.hub.join(subscriber)
    try:
        # No await between the join and this: earlier text is in the drafts, later text is queued.
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
    """Return the part of the reply that the model had already streamed when the client connected,
    as frames for the client."""
    found = api.hub.partial_replies({turn.team_id})
    return [{**draft, "op": "delta"} for draft in found if draft["node_id"] == reply_id]


async def _news(
    api: Api, turn: ClientTurn, subscriber: Subscriber
) -> AsyncGenerator[dict[str, Any] | None]:
    """Yield frames, and None after `KEEP_ALIVE_S` without one, until the reply is stored or
    `LONGEST_WAIT_S` is over."""
    now = asyncio.get_running_loop().time
    deadline = now() + LONGEST_WAIT_S
    while await api.store.read(client_turns.reply, turn) is None:
        frame: dict[str, Any] | None = None
        # Read the rows again after each event that may have ended the reply, and after each
        # timeout: another process may have stored the reply without an event in this one.
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
    """Return the next frame; None after `KEEP_ALIVE_S`, or if the subscriber's queue has
    overflowed."""
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


@value
class Chat:
    """Writes chat completions, whole and as chunks."""

    id: str
    model: str
    at: datetime

    def whole(self, text: str, usage: Usage) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": _usage(usage)}

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, words: str) -> bytes:
        return self._chunk({"content": words})

    def end(self, usage: Usage | None) -> bytes:
        """Return the chunks that end a stream: one with `finish_reason`, and one with the token
        usage if the client asked for it."""
        last = self._chunk({}, finish="stop")
        if usage is not None:
            head = self._head("chat.completion.chunk")
            last += _data({**head, "choices": [], "usage": _usage(usage)})
        return last + _DONE

    def failure(self, error: dict[str, Any]) -> bytes:
        return _data(error) + _DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.id}",
            "object": kind,
            "created": int(self.at.timestamp()),
            "model": self.model,
            "system_fingerprint": None,
        }


def _data(said: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(said) + b"\n\n"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }
