"""Requests: reads the bodies of `/v1/chat/completions`.

Clients send their whole history; the agent has its own. So only what the user wrote after the last
assistant message counts. Fields that tune a model (`temperature`, `max_tokens`) mean nothing to an
agent and are ignored, and so are system prompts: an agent has its own character. Fields that would
change the form of the answer are refused.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, cast

import orjson

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.value import value
from agiraph.features.chat_api.errors import Unsupported

MOST_ATTACHMENTS = 10
SAME_FOR = timedelta(minutes=10)
"""How long a request without conversation or history counts as the same one: SDKs repeat a request
within this time, a person rarely means the same words twice."""
_DATA_URL = re.compile(r"data:(?P<type>[a-z]+/[A-Za-z0-9.+-]+);base64,(?P<data>.*)", re.DOTALL)
_ASSISTANT = ("assistant", "model")
_IGNORED_ROLES = ("system", "developer")


@value
class Said:
    """A message of the request."""

    role: str
    text: str
    attachments: tuple[Attachment, ...] = ()


@value
class UserInput:
    """The message of the user in a request, and the messages before it."""

    model: str
    text: str
    attachments: tuple[Attachment, ...]
    history: tuple[Said, ...]
    stream: bool
    is_usage_wanted: bool
    key: str
    """The client's name of the conversation; empty: it has none."""

    def digest(self, *, caller: str, agent_id: str, key: str, once: str) -> str:
        """Return the hash by which the same request is recognised. It holds what was said, not
        system prompts, which may tell the time."""
        said = [[said.role, said.text] for said in self.history]
        files = [[file.name, file.data] for file in self.attachments]
        # The empty part keeps the hashes as they are stored, so old requests stay known.
        parts = [caller, agent_id, key, once, "", said, self.text, files]
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()

    @property
    def same_for(self) -> timedelta | None:
        """How long the same request is the same message; None: for ever."""
        return None if self.history else SAME_FOR


def read_chat(body: Mapping[str, Any]) -> UserInput:
    """Return what a chat completion asks. Raise `Unsupported` with the field that is wrong."""
    refuse_tools(body)
    _refuse_forms(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Unsupported("`messages` must be a list of messages.", "messages", code="invalid")
    said = [_said(message) for message in cast(list[Any], messages)]
    last = max((i for i, message in enumerate(said) if message.role in _ASSISTANT), default=-1)
    new = [message for message in said[last + 1 :] if message.role == "user"]
    files = tuple(file for message in new for file in message.attachments)
    text = "\n\n".join(message.text for message in new if message.text.strip())
    if not text and not files:
        raise Unsupported(
            "There is nothing new to answer: the last message must be the user's, with text.",
            "messages",
            code="invalid",
        )
    if len(files) > MOST_ATTACHMENTS:
        raise Unsupported(f"Attach at most {MOST_ATTACHMENTS} files at a time.", "messages")
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise Unsupported("`model` names the agent: `team` or `team/agent`.", "model")
    return UserInput(
        model=model.strip(),
        text=text or f"(I attach {', '.join(file.name for file in files)}.)",
        attachments=files,
        history=tuple(m for m in said[: last + 1] if m.role not in _IGNORED_ROLES),
        stream=body.get("stream") is True,
        is_usage_wanted=bool(mapping(body.get("stream_options")).get("include_usage")),
        key=_text(body.get("user")) or _text(body.get("safety_identifier")),
    )


def refuse_tools(body: Mapping[str, Any]) -> None:
    """Raise `Unsupported` with the names of the client's tools, if it brings any."""
    for field in ("tools", "functions"):
        given = body.get(field)
        if not isinstance(given, list) or not given:
            continue
        named = ", ".join(repr(_tool_name(tool)) for tool in cast(list[Any], given)[:10])
        raise Unsupported(
            f"Tools of the client are not used here: {named}. An agent works with its own tools; "
            f"switch them off in your client, or leave out `{field}`.",
            field,
        )


def _tool_name(tool: Any) -> str:
    fields = mapping(tool)
    inner = mapping(fields.get("function"))
    return str(inner.get("name") or fields.get("name") or fields.get("type") or "unnamed")


def _said(message: Any) -> Said:
    fields = mapping(message)
    role: Any = fields.get("role")
    content = fields.get("content")
    if role == "tool" or role == "function":
        raise Unsupported("Results of the client's tools are not used here.", "messages")
    if role not in ("user", *_ASSISTANT, *_IGNORED_ROLES):
        raise Unsupported(f"The role {role!r} is not known.", "messages", code="invalid")
    if isinstance(content, str) or content is None:
        return Said(role=role, text=content or "")
    if not isinstance(content, list):
        raise Unsupported("`content` must be text or a list of parts.", "messages", code="invalid")
    parts = [mapping(part) for part in cast(list[Any], content)]
    texts = [_text(part.get("text")) or _text(part.get("refusal")) for part in parts]
    # Files of earlier messages were taken when those were new.
    files = _attachments(parts) if role == "user" else ()
    return Said(role=role, text="\n".join(t for t in texts if t), attachments=tuple(files))


def _attachments(parts: Iterable[Mapping[str, Any]]) -> Iterable[Attachment]:
    for number, part in enumerate(parts, 1):
        match part.get("type"):
            case "text" | None:
                continue
            case "image_url":
                image = part.get("image_url")
                url = image if isinstance(image, str) else mapping(image).get("url")
                yield _from_url(url, f"image-{number}")
            case "file":
                file = mapping(part.get("file"))
                name = _text(file.get("filename")) or f"file-{number}"
                yield _from_url(file.get("file_data"), name)
            case "input_audio":
                sound = mapping(part.get("input_audio"))
                kind = re.sub(r"\W", "", _text(sound.get("format"))) or "wav"
                yield _attachment(f"audio-{number}.{kind}", f"audio/{kind}", sound.get("data"))
            case other:
                raise Unsupported(f"A part of the type {other!r} is not taken here.", "messages")


def _from_url(url: Any, name: str) -> Attachment:
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        raise Unsupported(
            "A file or picture must be in the request itself, as a data: URL in base64. Links and "
            "file ids are never fetched.",
            "messages",
        )
    kind = found["type"]
    if "." not in name:
        name = f"{name}.{kind.partition('/')[2].partition('+')[0]}"
    return _attachment(name, kind, found["data"])


def _attachment(name: str, media_type: str, data: Any) -> Attachment:
    try:
        base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except ValueError as error:
        raise Unsupported(f"{name!r} is not base64: {error}", "messages", code="invalid") from error
    return Attachment(name=name[:200], media_type=media_type, data=data)


def _refuse_forms(body: Mapping[str, Any]) -> None:
    """Raise `Unsupported` if the request wants another answer than one reply in words."""
    if body.get("n") not in (None, 1):
        raise Unsupported("`n` cannot be used here. An agent gives one reply.", "n")
    kind = mapping(body.get("response_format")).get("type", "text")
    if kind != "text":
        raise Unsupported(
            f"`response_format` {kind!r} cannot be used here: an agent replies in words. Ask it to "
            "publish a file in that form.",
            "response_format",
        )
    wanted = body.get("modalities")
    if isinstance(wanted, list) and any(one != "text" for one in cast(list[Any], wanted)):
        raise Unsupported("`modalities`: an agent replies in text.", "modalities")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if it is none."""
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
