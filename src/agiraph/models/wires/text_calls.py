"""Text calls: the syntax of tool calls in a model's text, and the parser of replies. No I/O.

A call is `<call KEY name>` at the beginning of a line, one JSON object, and `</call>` at the end of
a line. The parser looks at every line once, so it takes linear time for any text.
"""

import json
import re
from typing import Any, Literal, cast

import orjson

from agiraph.core.domain.chat import ToolCall, is_unterminated
from agiraph.core.domain.errors import ModelGarbled
from agiraph.core.domain.text.json_text import is_too_deep, strict_object
from agiraph.core.domain.value import dataclass

# A reply with more calls comes from a model that repeats itself.
MAX_CALLS = 64
MAX_NAME_CHARS = 128
NO_NAME = "no_name"
"""The tool name of a call that names none. No such tool exists, so the runtime answers with the
names of the tools."""

_END = "</call>"
_THINK, _THINK_END = "<think>", "</think>"
_FENCE_STARTS = frozenset("`~ ")
"""The first characters that a line with a code fence can have."""
# The possessive quantifiers below (`+` behind a quantifier) forbid backtracking. With it, a page
# that an agent quotes could keep the event loop busy for minutes.
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)")
_LOOKS_LIKE_CALL = re.compile(r"^[ \t]*+<call(?=[ >])", re.MULTILINE)
_NOT_IN_NAMES = re.compile(r"[\s<>]+")

LineKind = Literal["unknown", "text", "call", "thinking"]
"""What a line belongs to; unknown while too little of the line has arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    has_missed_call: bool = False
    """Whether the text contains something that looks like a call and is none."""
    thinking: str = ""


def parse(text: str, key: str) -> ParsedReply:
    """Split a whole reply into text, calls and thinking. Without a key there are no calls."""
    parser = ReplyParser(key)
    shown = parser.feed(text) + parser.end()
    has_missed_call = bool(key) and (
        f"<call {key}" in shown or _LOOKS_LIKE_CALL.search(shown) is not None
    )
    return ParsedReply(
        text=shown.strip(),
        calls=tuple(parser.calls),
        has_missed_call=has_missed_call,
        thinking="\n".join(parser.thinking).strip(),
    )


def format_call(call: ToolCall, key: str) -> str:
    """Return a call as a model writes it. Malformed arguments stay as the model wrote them."""
    body = call.malformed
    if body is None:
        body = orjson.dumps(call.arguments).decode()
    return f"<call {key} {tag_name(call.name)}>\n{body}\n{_END}"


def tag_name(name: str) -> str:
    """Return a tool's name without the characters that would end a `<call>` tag."""
    return _NOT_IN_NAMES.sub("_", name) or NO_NAME


class ReplyParser:
    """Parses a reply that arrives in pieces of any size, and returns the text to display."""

    def __init__(self, key: str) -> None:
        self.calls: list[ToolCall] = []
        self.thinking: list[str] = []
        self._call_start = f"<call {key}" if key else ""
        self._kind: LineKind = "unknown"
        self._line: list[str] = []
        self._call_lines: list[str] = []
        self._fence = ""
        self._has_begun = False
        """Whether anything but white space has arrived. Thinking stands before all else."""
        self._shown: list[str] = []

    def feed(self, piece: str) -> str:
        """Take the next piece of the reply and return the text that can be shown by now."""
        *lines, rest = piece.split("\n")
        for line in lines:
            self._take_line(line)
        self._take_partial(rest)
        return self._flush()

    def _take_line(self, line: str) -> None:
        # The first two cases only save time: most lines are text, and arrive as a whole.
        if self._kind == "unknown" and not self._line and self._is_plain(line):
            self._shown += (line, "\n")
            if line[:1] in _FENCE_STARTS:
                self._toggle_fence(line)
        elif self._kind == "call" and not self._line and _END not in line:
            self._call_lines.append(line)
        else:
            self._line.append(line)
            if self._kind == "text":
                self._shown.append(line)
            self._end_line()

    def _is_plain(self, line: str) -> bool:
        """Whether a whole line is certainly text; a cheap test."""
        return not line.startswith("<call ") if self._has_begun else not line or line.isspace()

    def end(self) -> str:
        """End the reply and return the text that was held back."""
        if self._line:
            self._end_line(is_last=True)
        if self._call_lines:
            self._end_call(is_closed=False)
        return self._flush()

    def _flush(self) -> str:
        shown, self._shown = "".join(self._shown), []
        return shown

    def _take_partial(self, piece: str) -> None:
        """Take the beginning of a line. Hold it back while it may become a call or thinking."""
        if not piece:
            return
        self._line.append(piece)
        if self._kind == "text":
            self._shown.append(piece)
        elif self._kind == "unknown":
            line = "".join(self._line)
            self._kind = self._classify(line)
            if self._kind == "text":
                self._shown.append(line)

    def _classify(self, line: str, *, is_whole: bool = False) -> LineKind:
        if self._fence:
            return "text"
        if not self._has_begun:
            # DeepSeek R1, Qwen and others begin their reply with reasoning in this form when the
            # server does not separate it. A `<think>` later in the text is a quotation.
            if line.startswith(_THINK):
                return "thinking"
            if _THINK.startswith(line) and not is_whole:
                return "unknown"
        start = self._call_start
        if not start or len(self.calls) == MAX_CALLS:
            return "text"
        if line.startswith(start):
            after = line[len(start) : len(start) + 1]
            if not after:
                return "call" if is_whole else "unknown"
            return "call" if after == ">" or after.isspace() else "text"
        return "unknown" if start.startswith(line) and not is_whole else "text"

    def _end_line(self, *, is_last: bool = False) -> None:
        line, self._line = "".join(self._line), []
        if self._kind == "unknown":
            self._kind = self._classify(line, is_whole=True)
            if self._kind == "text":
                self._shown.append(line)
        match self._kind:
            case "call":
                self._call_lines.append(line)
                if line.rstrip().endswith(_END):
                    self._end_call(is_closed=True)
            case "thinking":
                self._end_thinking_line(line, is_last=is_last)
            case _:
                self._end_text_line(line, is_last=is_last)

    def _end_text_line(self, line: str, *, is_last: bool) -> None:
        self._kind = "unknown"
        self._has_begun = self._has_begun or bool(line.strip())
        if not is_last:
            self._shown.append("\n")
        self._toggle_fence(line)

    def _toggle_fence(self, line: str) -> None:
        """Begin or end a code fence, if this line does. Calls inside of a fence are examples."""
        if mark := _FENCE.match(line):
            if not self._fence:
                self._fence = mark[1]
            elif mark[1].startswith(self._fence) and not line[mark.end() :].strip():
                self._fence = ""

    def _end_thinking_line(self, line: str, *, is_last: bool) -> None:
        if not self._has_begun:
            line = line.removeprefix(_THINK)
            self._has_begun = True
        thinking, end, after = line.partition(_THINK_END)
        self.thinking.append(thinking)
        if end:
            self._shown.append(after.lstrip())
            self._end_text_line("", is_last=is_last)

    def _end_call(self, *, is_closed: bool) -> None:
        self._kind = "unknown"
        self._has_begun = True
        raw, self._call_lines = "\n".join(self._call_lines).rstrip(), []
        self.calls.append(_parse_call(raw[len(self._call_start) :], is_closed=is_closed))


def _parse_call(raw: str, *, is_closed: bool) -> ToolCall:
    """Return the call in the text after its key; with `malformed` set if it cannot be made."""
    head, newline, below = raw.removesuffix(_END).partition("\n")
    name, mark, beside = head.partition(">")
    body = (beside + newline + below).strip()
    name = name.strip()[:MAX_NAME_CHARS]
    if mark and not is_closed and is_unterminated(body):
        return ToolCall(id="", name=name or NO_NAME, malformed=body)
    if not is_closed or not mark:
        lacking = _END if mark else "> behind the name"
        return ToolCall(id="", name=name or NO_NAME, malformed=f"(without {lacking}) {body}")
    given = strict_object(body or "{}")
    if given is None:
        return ToolCall(id="", name=name or NO_NAME, malformed=body)
    if name:
        return ToolCall(id="", name=name, arguments=given)
    inner_name, arguments = given.get("name"), given.get("arguments")
    if isinstance(inner_name, str) and isinstance(arguments, dict) and len(given) == 2:
        # {"name": …, "arguments": …} is the form that most models were trained on.
        arguments = cast(dict[str, Any], arguments)
        return ToolCall(id="", name=inner_name[:MAX_NAME_CHARS] or NO_NAME, arguments=arguments)
    return ToolCall(id="", name=NO_NAME, malformed=body)


def first_object(text: str) -> str:
    """Return the first JSON object anywhere in a text, or raise `ModelGarbled`."""
    decoder = json.JSONDecoder(strict=False)
    start = text.find("{")
    attempts_left = 64  # each attempt may read all of the text
    while start >= 0 and attempts_left:
        try:
            value, _ = decoder.raw_decode(text, start)
            if is_too_deep(value):
                break
            return orjson.dumps(value).decode()
        # orjson raises TypeError for text that is not UTF-8 and for integers over 64 bits.
        except (ValueError, RecursionError, TypeError):
            pass
        start, attempts_left = text.find("{", start + 1), attempts_left - 1
    raise ModelGarbled(f"The model was asked for a JSON object and answered: {text[:200]!r}")
