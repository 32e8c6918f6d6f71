"""Remote model: what the models of all wires share: an address, a key, how they are asked, and how
their responses are read.

A vendor's module encodes the request and brings a `ResponseReader` for its response format.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import (
    KeyRefused,
    ModelError,
    ModelGarbled,
    ModelMissing,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.core.domain.value import dataclass, value
from agiraph.core.domain.work import Effort, first_effort
from agiraph.faultpoints import fault
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.http.client import HttpClient, Response
from agiraph.models.http.connection import Body
from agiraph.models.http.errors import error_for_status, error_text
from agiraph.models.http.events import CUT_OFF, EventStreamParser, parse_object, read_object
from agiraph.models.options import NONE, ModelOptions
from agiraph.models.wires import usage as usages
from agiraph.models.wires.reply_builder import ResponseReader, ThoughtFilter

log: logging.Logger = logging.getLogger("agiraph.models")

KEY = "{key}"
"""Stands for the key in a wire's header."""
BEARER = ("authorization", f"Bearer {KEY}")
CUMULATIVE = "cumulative"
"""Learned of a server: each piece of its text contains all the text so far."""
SLOW = "slow"
"""Learned of a server: it did not begin a reply in time, and is given longer the next time."""
SLOW_FACTOR = 2.0

Part = dict[str, Any]
Ladder = Callable[[Effort], Sequence[Part]]
"""Returns the forms of an effort in one API, the best first. A refused form is followed by the
next one, and the last by none."""

_REASONING_WORDS = ("signature", "`thinking`", "encrypted content", "encrypted_content",
                    "of type 'reasoning'", "items are not persisted")  # fmt: skip
"""Words in the error of a vendor that refuses reasoning of its own. Only OpenAI has an error code
for it; all name the field in the message."""
_EFFORT_WORDS = ("effort", "thinking", "reasoning", "chat_template_kwargs", "unknown name",
                 "extra inputs", "extra_forbidden", "unrecognized")  # fmt: skip
"""Words in the error of a server that refuses a setting for thinking."""
_ONLY_NOW = ("must start with a thinking block", "expected `thinking`")
"""Anthropic's words for a thread that cannot be continued with thinking at this point: another
model made the calls that wait for their results."""


@value
class Settings:
    """The optional settings of one request, in the form of its wire."""

    effort: Part = field(default_factory=dict[str, Any])
    """The fields that say how much the model thinks; empty: none are sent."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields from the settings file, to be merged into the request."""


def plain(request: Request) -> Settings:
    """Return the settings of a request to a model without options, at no special effort."""
    return Settings(temperature=request.temperature, max_output_tokens=request.max_output_tokens)


@dataclass(slots=True)
class Refusals:
    """What a model's server has refused, for the life of the process."""

    forms: dict[Effort, int] = field(default_factory=dict[Effort, int])
    """By effort: how many of its forms were refused."""
    takes_temperature: bool = True

    def form(self, ladder: Ladder, effort: Effort | None) -> Part:
        """Return the form of the effort that was not refused yet; empty if there is none."""
        if effort is None:
            return {}
        forms, refused = ladder(effort), self.forms.get(effort, 0)
        return forms[refused] if refused < len(forms) else {}

    def give_up(self, form: Part, ladder: Ladder, effort: Effort, why: str) -> None:
        """Ask for an effort in its next form, unless another request has found that out already."""
        if self.form(ladder, effort) != form:
            return
        self.forms[effort] = self.forms.get(effort, 0) + 1
        instead = self.form(ladder, effort) or "its own default"
        log.warning(
            "A model refuses the effort %r as %s; from now on it is asked with %s. %s",
            effort,
            form,
            instead,
            why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModel(ABC):
    """A model behind HTTP. A wire's own class encodes the request and names the reader."""

    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: HttpClient
    options: ModelOptions = NONE
    refusals: Refusals = field(default_factory=Refusals, repr=False, compare=False)
    learned: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """Names of what earlier replies have shown about this server and model, such as a chat template
    that accepts no system message."""

    @abstractmethod
    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply: ...

    async def ask(
        self,
        send: Callable[[Settings], Awaitable[Reply]],
        request: Request,
        ladder: Ladder,
        drop_reasoning: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """Send the request with its settings; if the server refuses one of them, send it without.

        What was refused is not asked for again in this process, and one warning says so.
        `drop_reasoning` is called if the vendor refuses its own reasoning in the thread. Anthropic
        and Google sign reasoning, OpenAI encrypts it: another model, other tools or a compacted
        thread may invalidate it.
        """
        options, may_think = self.options, True
        effort = first_effort(request.effort, options.effort)
        temperature = options.temperature if request.temperature is None else request.temperature
        while True:
            settings = Settings(
                effort=self.refusals.form(ladder, effort) if may_think else {},
                temperature=temperature if self.refusals.takes_temperature else None,
                max_output_tokens=request.max_output_tokens or options.max_output_tokens,
                body=options.body,
            )
            try:
                return await send(settings)
            except ModelRefused as error:
                said = str(error).lower()
                if any(words in said for words in _REASONING_WORDS) and drop_reasoning():
                    continue
                if isinstance(error, (KeyRefused, ModelMissing, QuotaSpent)):
                    raise
                if settings.temperature is not None and "temperature" in said:
                    self.refusals.takes_temperature = False
                    log.warning("%s takes no temperature, so none is sent: %s", self.name, error)
                elif settings.effort and any(words in said for words in _ONLY_NOW):
                    may_think = False
                elif effort and settings.effort and any(words in said for words in _EFFORT_WORDS):
                    self.refusals.give_up(settings.effort, ladder, effort, f"{self.name}: {error}")
                else:
                    raise

    async def post(
        self,
        path: str,
        body: Body,
        reader: ResponseReader,
        *,
        key_header: tuple[str, str],
        request: Request,
        on_delta: OnDelta | None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and return the whole reply, or raise a `ModelError`.

        A response that breaks off is an error: a reply is never returned in part. `key_header`: the
        name of the header for the key, and its value with KEY in place of the key; a server without
        a key gets none.
        """
        url, sent_bytes = self.base_url.rstrip("/") + path, sum(map(len, body))
        patience = self.http.patience_with(url, self.name)
        if SLOW in self.learned:
            patience = patience.longer(SLOW_FACTOR)
        if CUMULATIVE in self.learned:
            reader.reply.expect_cumulative()
        slot = await self.http.rate_limits.of(self.name, self.key).acquire(
            request.team, sent_bytes // usages.BYTES_PER_TOKEN, request.longest_wait_s
        )
        try:
            await self.http.post(
                url,
                headers=self._headers(key_header, headers or {}),
                body=body,
                handle=lambda response: read_response(response, reader, on_delta),
                patience=patience,
                slot=slot,
            )
            reply = finished(reader, request, name=self.name, sent_bytes=sent_bytes)
        except ModelError as error:
            self._learn(error, reader, request, sent_bytes)
            raise
        finally:
            slot.answer()  # if the connection failed before any response
        if reader.reply.is_cumulative:
            self.learned.add(CUMULATIVE)
        slot.settle(reply.usage)
        fault("fx:after:llm")
        return reply

    def _headers(self, key_header: tuple[str, str], headers: Mapping[str, str]) -> dict[str, str]:
        name, value = key_header
        keyed = {name: value.replace(KEY, self.key)} if self.key else {}
        return {"content-type": "application/json", **headers, **keyed, **self.options.headers}

    def _learn(
        self, error: ModelError, reader: ResponseReader, request: Request, sent_bytes: int
    ) -> None:
        """Note what a failed request shows of the server; say in the error what it cost."""
        if isinstance(error, ModelSilent):
            self.learned.add(SLOW)
        if isinstance(error, ModelGarbled):
            spent = usages.estimate(reader.reply, request, sent_bytes)
            error.input_tokens, error.output_tokens = spent.input_tokens, spent.output_tokens
        # Some servers repeat the key that they refuse. Error texts are stored and shown.
        error.args = (str(error).replace(self.key or "\0", "[key]"),)


UNREADABLE = (KeyError, IndexError, TypeError, AttributeError, ValueError)
"""The exceptions of code that reads a field which is missing or has another type."""

_STATUS_OF_ERROR_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""Anthropic's error types that a retry does not help. Any other type counts as 503."""


def finished(reader: ResponseReader, request: Request, *, name: str, sent_bytes: int) -> Reply:
    """Return the reply that was read, with counts that can be true, or raise a `ModelError`."""
    if reader.reply.served_model == name.partition("/")[2]:  # nothing but what was asked for
        reader.reply.served_model = ""
    reply = _checked(reader.reply.build(), request)
    reply = usages.checked(
        reply, reader.reply.doubts, request=request, model=name, sent_bytes=sent_bytes
    )
    usages.check_prompt(reply.usage, request=request, model=name, sent_bytes=sent_bytes)
    return reply


async def read_response(
    response: Response, reader: ResponseReader, on_delta: OnDelta | None
) -> None:
    """Read a response with status 200 into the reader's reply; show its text without thoughts."""
    # We always ask for a stream, but some compatible servers and gateways answer with one JSON
    # object.
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_stream = content_type == "text/event-stream"
    shown = None if on_delta is None else ThoughtFilter(on_delta)
    try:
        if is_stream:
            await _read_stream(response, reader, shown.feed if shown else None)
        else:
            body = await read_object(response)
            if body.get("error"):
                raise _error_in_response(body, "", is_unused=True)
            reader.read(body)
            reader.reply.has_begun = True
        reader.finish()
    except UNREADABLE as error:
        problem = f"The response is not {reader.kind}"
        if is_stream:
            problem = "An event of the stream cannot be read"
        raise ModelGarbled(f"{problem}: {error!r}") from error
    if shown is not None:
        shown.end()


async def _read_stream(
    response: Response, reader: ResponseReader, on_delta: OnDelta | None
) -> None:
    # The loop ends at the vendor's last event and not at the end of the body, for which some
    # servers take seconds.
    events, chunk, has_begun = EventStreamParser(), b" ", False
    while chunk and not reader.reply.is_closed:
        chunk = await response.read_chunk()
        for payload in events.feed(chunk):
            if not has_begun:
                response.begin()
                has_begun = True
            _take_event(payload, reader, on_delta)
            if reader.reply.is_closed:
                break
    if not reader.reply.is_ended:
        raise ModelUnavailable(CUT_OFF)


def _take_event(payload: bytes, reader: ResponseReader, on_delta: OnDelta | None) -> None:
    if payload == b"[DONE]":  # OpenAI's end of a stream, which compatible servers copy
        reader.reply.is_ended = reader.reply.is_closed = True
        return
    if not payload:
        return
    event = parse_object(payload)
    if event.get("object") == "error":  # vLLM's form, without an object around it
        event = {"error": event}
    if event.get("error"):
        is_unused = not reader.reply.has_begun
        raise _error_in_response(event, "The response broke off: ", is_unused=is_unused)
    reader.reply.has_begun = True
    for text in reader.take(event):
        if on_delta is not None:
            on_delta(text)


def _error_in_response(body: dict[str, Any], prefix: str, *, is_unused: bool) -> ModelError:
    """Return the error for an error object in a response with status 200.

    OpenRouter sends such objects with a numeric `code`, Anthropic with a `type`. `is_unused`: no
    part of the reply arrived before the error.
    """
    # An unknown error counts as 503: retries are few, and a passing failure that is taken for a
    # lasting one would park the node until a person comes.
    reason = error_text(orjson.dumps(body))
    error: Any = body["error"]
    details = cast(dict[str, Any], error) if isinstance(error, dict) else {}
    code: Any = details.get("code")
    if not isinstance(code, int) or not 400 <= code < 600:
        code = _STATUS_OF_ERROR_TYPE.get(str(details.get("type")), 503)
    error = error_for_status(code, reason, f"{prefix}{reason}")
    error.unused = is_unused and error.unused
    return error


def _checked(reply: Reply, request: Request) -> Reply:
    """Return the reply with unique call ids; refuse text that is not the JSON asked for."""
    if request.schema is not None and not reply.calls:
        try:
            orjson.loads(reply.text)
        except orjson.JSONDecodeError as error:
            raise ModelGarbled(
                f"The model was asked for JSON and answered: {reply.text[:80]!r}"
            ) from error
    # Gemini may send calls without ids, and some OpenAI-compatible servers repeat theirs.
    calls = request.transcript.with_unique_ids(reply.calls)
    return reply if calls == reply.calls else replace(reply, calls=calls)
