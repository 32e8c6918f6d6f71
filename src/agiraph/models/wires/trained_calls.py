"""Trained calls: reads calls in the text forms that models were trained on.

For servers that send a model's calls as text because no tool parser is set there. A person switches
a form on for a server or a model (`calls = "hermes"`); without that, such text is only text. A call
that also stands in what the model was shown is never made: it may be a quotation.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from agiraph.core.domain.chat import ToolCall, Transcript
from agiraph.core.domain.text.json_text import object_in, value_at
from agiraph.core.domain.value import dataclass
from agiraph.late_patterns import late
from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.models.options import TrainedForm

MAX_CALLS = 64
_NAME = r"[\w.:-]{1,128}"
_BLANK = late(r"[\s;]*+")
_FENCE = late(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_CLOSED = late(r"\s*+(?:</function>)?+\s*+(?:</tool_call>)?+")
_PARAMETER = late(rf"\s*+<parameter=({_NAME})>\n?(.*?)\n?</parameter>", re.DOTALL)
_PARAMETERS_END = late(r"\s*+</function>")
_MISTRAL_NAME = late(rf"\s*+({_NAME})(?:\[CALL_ID\][\w-]*+)?(?:\[ARGS\])?(?=\s*\{{)")
_ANSWERED = late(r"<tool_response>|\[TOOL_RESULTS\]|<\|start_header_id\|>|<tool_result>")
"""What a model writes that goes on by inventing the answer to its call."""

_FUNCTION = late(rf"(?:<tool_call>\s*+)?<function=({_NAME})>")
_STARTS: dict[TrainedForm, re.Pattern[str]] = {
    "hermes": late(r"<tool_call>\s*+(?=\{)"),
    "qwen": late(rf"<tool_call>\s*+(?=\{{)|{_FUNCTION.pattern}"),
    "llama": late(rf"<\|python_tag\|>\s*+(?=\{{)|{_FUNCTION.pattern}"),
    "mistral": late(r"\[TOOL_CALLS?\]\s*+"),
}
_MARKS: dict[TrainedForm, tuple[str, ...]] = {
    "hermes": ("<tool_call>",),
    "qwen": ("<tool_call>", "<function="),
    "llama": ("<|python_tag|>", "<function=", '{"name"'),
    "mistral": ("[TOOL_CALLS]", "[TOOL_CALL]"),
}
"""How a call of each form begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCalls:
    """The calls in a text, and the text without them."""

    text: str
    calls: tuple[ToolCall, ...]


def calls_in(text: str, form: TrainedForm) -> FoundCalls | None:
    """Return the calls that a reply ends with or is interrupted by; None if it holds none.

    A call begins a line, outside of code fences. Further calls follow it directly. What a model
    writes behind them as if it had been answered is left out.
    """
    start = _first_start(text, form)
    if start is None:
        return None
    at, calls = start, list[ToolCall]()
    while len(calls) < MAX_CALLS:
        found, end = _calls_at(text, at, form)
        if not found:
            break
        calls += found
        at = _skip(text, end)
    if not calls:
        return None
    behind = text[at:]
    if (invented := _ANSWERED.search(behind)) is not None:
        behind = behind[: invented.start()]
    kept = "\n\n".join(filter(None, (text[:start].strip(), behind.strip())))
    return FoundCalls(text=kept, calls=tuple(calls))


@dataclass(frozen=True, slots=True)
class TrainedCallsModel:
    """A model on a server without a tool parser: its calls are read from its text."""

    inner: Model
    form: TrainedForm

    @property
    def name(self) -> str:
        return self.inner.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        may_call = bool(request.tools) and request.may_call and request.schema is None
        if not may_call:
            return await self.inner.reply(request, on_delta)
        shown = None if on_delta is None else _TextBeforeCalls(on_delta, _MARKS[self.form])
        reply = await self.inner.reply(request, shown.feed if shown else None)
        read = with_calls(reply, request, self.form)
        if read is None and shown is not None:
            shown.end()
        return read or reply


def with_calls(reply: Reply, request: Request, form: TrainedForm) -> Reply | None:
    """Return the reply with the calls that its text holds; None if it holds none to be made."""
    # No call of a reply is made whose rest the vendor withheld.
    is_plain = bool(reply.calls or reply.provider_data.refusal)
    found = None if is_plain else calls_in(reply.text, form)
    if found is None or _is_quoted(found.calls, request.transcript, form):
        return None
    # The vendor's own parts are dropped: they contain the text with the calls in it.
    return replace(
        reply,
        text=found.text,
        calls=request.transcript.with_unique_ids(found.calls),
        provider_data=replace(reply.provider_data, vendor=None),
    )


def _first_start(text: str, form: TrainedForm) -> int | None:
    """Return where the first call begins; None if there is none."""
    if form == "llama" and text.lstrip().startswith('{"name"'):
        return len(text) - len(text.lstrip())
    fences = [mark.start() for mark in _FENCE.finditer(text)]
    for start in _STARTS[form].finditer(text):
        line = text.rfind("\n", 0, start.start()) + 1
        is_fenced = sum(1 for fence in fences if fence < start.start()) % 2
        if not text[line : start.start()].strip() and not is_fenced:
            return start.start()
    return None


def _calls_at(text: str, at: int, form: TrainedForm) -> tuple[list[ToolCall], int]:
    """Return the calls that begin exactly here, and where they end."""
    start = _STARTS[form].match(text, at)
    if start is None:
        return _bare_call(text, at) if form == "llama" and text[at : at + 1] == "{" else ([], at)
    if form == "mistral":
        return _mistral_calls(text, start.end())
    if start.lastindex and start[1]:
        return _function_call(text, start[1], start.end())
    return _object_calls(text, start.end())


def _object_calls(text: str, at: int) -> tuple[list[ToolCall], int]:
    """Return the call that is one object with a name and arguments."""
    value, end = value_at(text, at)
    if value is None:
        closing = text.find("</tool_call>", at)
        end = len(text) if closing < 0 else closing
        value = object_in(text[at:end])
        if value is None:
            named = re.search(rf'"name"\s*:\s*"({_NAME})"', text[at:end])
            if named is None:
                return [], at
            broken = ToolCall(id="", name=named[1], malformed=text[at:end].strip())
            return [broken], _closed(text, end)
    found = _call_of(value)
    return ([found], _closed(text, end)) if found is not None else ([], at)


def _bare_call(text: str, at: int) -> tuple[list[ToolCall], int]:
    value, end = value_at(text, at)
    found = _call_of(value)
    return ([found], end) if found is not None else ([], at)


def _function_call(text: str, name: str, at: int) -> tuple[list[ToolCall], int]:
    """Return a call whose arguments follow its name: an object, or one mark for each."""
    body = _skip(text, at)
    if text[body : body + 1] == "{":
        value, end = value_at(text, body)
        if isinstance(value, dict):
            given = cast(dict[str, Any], value)
            return [ToolCall(id="", name=name, arguments=given)], _closed(text, end)
        closing = text.find("</function>", body)
        end = len(text) if closing < 0 else closing
        return [ToolCall(id="", name=name, malformed=text[body:end])], _closed(text, end)
    given, end = dict[str, Any](), at
    while (parameter := _PARAMETER.match(text, end)) is not None:
        given[parameter[1]] = parameter[2]
        end = parameter.end()
    if _PARAMETERS_END.match(text, end) is None:
        # It broke off: of a value without its end nobody knows how it would have gone on.
        return [ToolCall(id="", name=name, malformed="")], len(text)
    return [ToolCall(id="", name=name, arguments=given)], _closed(text, end)


def _mistral_calls(text: str, at: int) -> tuple[list[ToolCall], int]:
    if text[at : at + 1] == "[":
        value, end = value_at(text, at)
        entries = cast(list[Any], value) if isinstance(value, list) else []
        calls = [call for entry in entries if (call := _call_of(entry)) is not None]
        return (calls, end) if calls and len(calls) == len(entries) else ([], at)
    named = _MISTRAL_NAME.match(text, at)
    if named is None:
        return [], at
    body = _skip(text, named.end())
    value, end = value_at(text, body)
    if isinstance(value, dict):
        return [ToolCall(id="", name=named[1], arguments=cast(dict[str, Any], value))], end
    return [ToolCall(id="", name=named[1], malformed=text[body:])], len(text)


def _call_of(value: Any) -> ToolCall | None:
    """Return the call that an object with a name and arguments stands for."""
    if not isinstance(value, dict):
        return None
    entry = cast(dict[str, Any], value)
    name = entry.get("name")
    given: Any = entry.get("arguments", entry.get("parameters", {}))
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        return None
    if isinstance(given, dict):
        return ToolCall(id="", name=name, arguments=cast(dict[str, Any], given))
    return ToolCall(id="", name=name, malformed=given if isinstance(given, str) else "null")


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _closed(text: str, at: int) -> int:
    closed = _CLOSED.match(text, at)
    return at if closed is None else closed.end()


def _is_quoted(calls: tuple[ToolCall, ...], transcript: Transcript, form: TrainedForm) -> bool:
    """Whether one of the calls stands in what the model was shown by others."""
    made = [(call.name, call.arguments, call.malformed) for call in calls]
    objects = [written for call in calls for written in _as_objects(call)]
    for text in _shown(transcript):
        if any(mark in text for mark in _MARKS[form]):
            shown = ((c.name, c.arguments, c.malformed) for c in _all_calls(text, form))
            if any(call in made for call in shown):
                return True
        if '"name"' in text:
            bare = "".join(text.split())
            if any(written in bare for written in objects):
                return True
    return False


def _all_calls(text: str, form: TrainedForm) -> Iterator[ToolCall]:
    """Yield the calls anywhere in a text, also within lines and code fences."""
    for start in _STARTS[form].finditer(text):
        yield from _calls_at(text, start.start(), form)[0]


def _as_objects(call: ToolCall) -> Iterator[str]:
    """Yield a call as the objects that may stand for it, without white space."""
    given = "".join(json.dumps(call.arguments, ensure_ascii=False).split())
    for key in ("arguments", "parameters"):
        yield f'"name":"{call.name}","{key}":{given}'


def _shown(transcript: Transcript) -> Iterator[str]:
    yield transcript.system
    for turn in transcript.spoken():
        if turn.role != "assistant":
            yield turn.text


class _TextBeforeCalls:
    """Passes on the pieces of a streamed reply until a call begins; the rest is held back."""

    def __init__(self, on_delta: OnDelta, marks: tuple[str, ...]) -> None:
        self._on_delta: Callable[[str], None] = on_delta
        self._marks = marks
        self._held = ""
        self._is_call = False

    def feed(self, piece: str) -> None:
        self._held += piece
        if self._is_call:
            return
        begin = self._possible_start()
        if begin and self._held[:begin]:
            self._on_delta(self._held[:begin])
        self._held = self._held[begin:]
        self._is_call = self._held.startswith(self._marks)

    def end(self) -> None:
        """Pass on what was held back: it was no call."""
        if self._held:
            self._on_delta(self._held)
            self._held = ""

    def _possible_start(self) -> int:
        """Return where a mark begins, or may begin with what has arrived so far."""
        whole = [at for mark in self._marks if (at := self._held.find(mark)) >= 0]
        if whole:
            return min(whole)
        longest = max(map(len, self._marks)) - 1
        for at in range(max(len(self._held) - longest, 0), len(self._held)):
            if any(mark.startswith(self._held[at:]) for mark in self._marks):
                return at
        return len(self._held)
