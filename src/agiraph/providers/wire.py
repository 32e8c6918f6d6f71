"""Wire: what asking a model is like whoever serves it, and the reply while it is still coming."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import orjson

from agiraph.domain.chat import ProviderData, ToolCall, VendorParts
from agiraph.domain.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.domain.work import Usage
from agiraph.faultpoints import fault
from agiraph.providers import counts
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http import (
    Events,
    Http,
    Response,
    error_text,
    failure,
    json_object,
    whole,
)
from agiraph.providers.http_connection import Body

UNREADABLE = (KeyError, IndexError, TypeError, AttributeError, ValueError)
"""What reading an answer raises where a field is missing or of another type."""

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""Kinds of errors that come inside an answer and will not pass; all others may."""


@dataclass(slots=True)
class DraftCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def call(self) -> ToolCall:
        return made_call(self.id, self.name, "".join(self.arguments))


@dataclass(slots=True)
class Draft:
    """What has come of a reply so far."""

    vendor: str
    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What the vendor wants back as it is; empty if it need not get anything back."""
    usage: Usage = Usage()
    doubts: list[str] = field(default_factory=list[str])
    """What in the counts of tokens cannot be true."""
    refusal: str = ""
    """Why the vendor withholds its answer, in its words."""
    limited: bool = False
    """The reply ran into the limit of its length."""
    begun: bool = False
    """Something of the answer has come."""
    ended: bool = False
    closed: bool = False
    """Nothing more is to come, even if the stream goes on."""

    def reply(self) -> Reply:
        text = "".join(self.text)
        if not text and not self.calls:
            if self.refusal:
                raise ModelRefused(f"The model refuses to answer: {self.refusal}")
            if self.limited:
                raise ModelGarbled("The model used up its limit of output before it said a word.")
            raise ModelGarbled("The model answered nothing at all.")
        parts = VendorParts(vendor=self.vendor, parts=self.parts) if self.parts else None
        data = ProviderData(thinking="".join(self.thinking), vendor=parts)
        return Reply(text=text, calls=tuple(self.calls), usage=self.usage, provider_data=data)


class Reader(Protocol):
    """Understands one vendor's answer."""

    draft: Draft
    kind: str
    """What the vendor calls an answer."""

    def take(self, event: dict[str, Any]) -> Iterator[str]:
        """One event of a stream; the words in it."""
        ...

    def read(self, body: dict[str, Any]) -> None:
        """A whole answer in one piece."""
        ...

    def finish(self) -> None:
        """All has come: fill in what could not be told before."""
        ...


async def ask(
    http: Http,
    url: str,
    *,
    name: str,
    headers: dict[str, str],
    key: str,
    body: Body,
    reader: Reader,
    request: Request,
    on_delta: OnDelta | None,
) -> Reply:
    """One whole reply, or a `ModelError`; a reply that breaks off anywhere is none."""
    headers = {"content-type": "application/json", **headers}
    try:
        await http.post(url, headers=headers, body=body, hear=lambda r: _hear(r, reader, on_delta))
        reply = _checked(reader.draft.reply(), request)
        sent = sum(map(len, body))
        reply = counts.checked(reply, reader.draft.doubts, model=name, sent_bytes=sent)
    except ModelError as error:
        # Some servers repeat the key they refuse; what is said here is written down and shown.
        error.args = (str(error).replace(key or "\0", "[key]"),)
        raise
    fault("fx:after:llm")
    return reply


async def _hear(response: Response, reader: Reader, on_delta: OnDelta | None) -> None:
    streamed = response.content_type == "text/event-stream"
    try:
        if streamed:
            await _gather(response, reader, on_delta)
        else:
            body = await whole(response)
            if body.get("error"):
                raise _broken_off(body, "", unused=True)
            reader.read(body)
        reader.finish()
    except UNREADABLE as error:
        lack = f"The answer lacks what {reader.kind} has"
        said = "A piece of the stream cannot be read" if streamed else lack
        raise ModelGarbled(f"{said}: {error!r}") from error


async def _gather(response: Response, reader: Reader, on_delta: OnDelta | None) -> None:
    events, chunk = Events(), b" "
    while chunk and not reader.draft.closed:
        chunk = await response.chunk()
        for data in events.feed(chunk):
            _take(data, reader, on_delta)
            if reader.draft.closed:
                break
    if not reader.draft.ended:
        raise ModelUnavailable("The answer was cut off before its end.")


def _take(data: bytes, reader: Reader, on_delta: OnDelta | None) -> None:
    if data == b"[DONE]":
        reader.draft.ended = reader.draft.closed = True
        return
    event = json_object(data)
    if event.get("error"):
        raise _broken_off(event, "The answer broke off: ", unused=not reader.draft.begun)
    reader.draft.begun = True
    for words in reader.take(event):
        if on_delta is not None:
            on_delta(words)


def _broken_off(body: dict[str, Any], opening: str, *, unused: bool) -> ModelError:
    """An error where an answer was due, with status 200: judged by what it says of itself.

    `unused`: nothing of an answer came before it.
    """
    said = error_text(orjson.dumps(body))
    error: Any = body["error"]
    about = cast(dict[str, Any], error) if isinstance(error, dict) else {}
    code: Any = about.get("code")
    if not isinstance(code, int) or not 400 <= code < 600:
        code = _STATUSES.get(str(about.get("type")), 503)
    error = failure(code, said, f"{opening}{said}")
    error.unused = unused and error.unused
    return error


def _checked(reply: Reply, request: Request) -> Reply:
    if request.schema is not None and not reply.calls:
        try:
            orjson.loads(reply.text)
        except orjson.JSONDecodeError as error:
            raise ModelGarbled(
                f"The answer is not the JSON that was asked for: {reply.text[:80]!r}"
            ) from error
    # Some vendors give no ids, and some servers repeat theirs.
    calls = request.transcript.with_unique_ids(reply.calls)
    return reply if calls == reply.calls else replace(reply, calls=calls)


async def or_plainly(attempt: Callable[[], Awaitable[Reply]], forget: Callable[[], bool]) -> Reply:
    """Ask; if the vendor does not accept its own thinking back, ask once more without it.

    It is bound to the model that thought it and to all that came before: another model of the
    same vendor, other tools or a shortened thread may make it void.
    """
    try:
        return await attempt()
    except ModelRefused as error:
        said = str(error).lower()
        if "signature" not in said and "`thinking`" not in said:
            raise
        if not forget():
            raise
    return await attempt()


def words(value: Any) -> str:
    """Text where text belongs, or nothing; a server that puts anything else there is garbled."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL keeps no NUL


def made_call(identity: str, name: str, arguments: Any) -> ToolCall:
    """A call as the model made it; arguments that are no object are kept as they were written."""
    if not name:
        raise ValueError("a call without a name")
    parsed: Any = arguments
    if isinstance(arguments, str):
        try:
            parsed = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            parsed = None
    if isinstance(parsed, dict):
        return ToolCall(id=identity, name=name, arguments=cast(dict[str, Any], parsed))
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=identity, name=name, malformed=text)
