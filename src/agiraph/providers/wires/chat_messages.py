"""Chat messages: the turns of a thread as messages of the chat completions API."""

import re
from collections.abc import Collection, Sequence
from hashlib import sha256

from agiraph.domain.chat import Attachment, ToolCall, Turn
from agiraph.providers.wires.request_buffer import (
    IMAGES,
    PDF,
    Part,
    arguments,
    attachment_text,
    call_id,
    is_failed,
    to_json,
    tool_name,
    vendor_parts,
)

_IDS = re.compile(r".{1,40}", re.DOTALL)
"""OpenAI refuses a call id of more than 40 characters."""
_NINE_LETTERS = re.compile(r"[a-zA-Z0-9]{9}")


class ChatEncoder:
    """Encodes turns as chat messages, in the forms that the server wants (`chat_forms`)."""

    def __init__(self, vendor: str, forms: Collection[str] = ()) -> None:
        self._vendor = vendor
        self._forms = frozenset(forms)
        self.has_reasoning: bool = False
        self._told: dict[str, str] = {}
        """The names of the calls that were told as text, by their ids."""

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "user":
            content = _content(turn)
            return {"role": "user", "content": content} if content else None
        if not turn.text and not turn.calls:
            return None
        own = vendor_parts(turn, self._vendor)
        if turn.calls and not own and "foreign_as_text" in self._forms:
            return self._told_reply(turn)
        message: Part = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": self._id(c.id), "type": "function", "function": _function(c)}
                for c in turn.calls
            ]
        if "reasoning_refused" not in self._forms:
            for part in own:
                self.has_reasoning = True
                message |= part
        if "reasoning_required" in self._forms:
            message.setdefault("reasoning_content", "")
        return message

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        messages: list[Part] = []
        told = [turn for turn in turns if turn.ref in self._told]
        for turn in turns:
            if turn not in told:
                identity = self._id(turn.ref or "")
                messages.append(
                    {"role": "tool", "tool_call_id": identity, "content": _result(turn)}
                )
        # A tool message holds only text. Attachments follow in a user message, which OpenAI refuses
        # before all calls are answered.
        parts = [_text(f"[{self._told[turn.ref or '']}] {_result(turn)}") for turn in told]
        parts += [_attachment(a) for turn in turns for a in turn.attachments]
        if parts:
            messages.append({"role": "user", "content": parts})
        return messages

    def _told_reply(self, turn: Turn) -> Part:
        """Return a reply of another model with its calls as words."""
        lines = [turn.text] if turn.text else []
        for call in turn.calls:
            self._told[call.id] = tool_name(call.name)
            lines.append(
                f"[Called {tool_name(call.name)} with {to_json(arguments(call)).decode()}]"
            )
        return {"role": "assistant", "content": "\n".join(lines), "reasoning_content": ""}

    def _id(self, identity: str) -> str:
        if "nine_letter_ids" not in self._forms:
            return call_id(identity, _IDS)
        if _NINE_LETTERS.fullmatch(identity):
            return identity
        return sha256(identity.encode()).hexdigest()[:9]


def _result(turn: Turn) -> str:
    return f"Error: {turn.text}" if is_failed(turn) else turn.text


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _content(turn: Turn) -> str | list[Part]:
    if not turn.attachments:
        return turn.text
    return [*map(_attachment, turn.attachments), *([_text(turn.text)] if turn.text else [])]


def _attachment(attachment: Attachment) -> Part:
    url = f"data:{attachment.media_type};base64,{attachment.data}"
    if attachment.media_type in IMAGES:
        return {"type": "image_url", "image_url": {"url": url}}
    if attachment.media_type == PDF:
        return {"type": "file", "file": {"filename": attachment.name, "file_data": url}}
    return _text(attachment_text(attachment))


def _function(call: ToolCall) -> dict[str, str]:
    return {"name": tool_name(call.name), "arguments": to_json(arguments(call)).decode()}
