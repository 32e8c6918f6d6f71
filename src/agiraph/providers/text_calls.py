"""Calls in text: their form, and the reading of a reply that may hold some. Pure; no I/O.

A call is `<call KEY name>` at the beginning of a line, one JSON object, and `</call>` at the end of
a line. Reading takes linear time, whatever the text: every line is looked at once.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import ModelGarbled

MOST_CALLS = 64
DEEPEST = 64
LONGEST_NAME = 128
NO_NAME = "no_name"
"""Called when a call names no tool: there is none of that name, and the runtime says which are."""

_END = "</call>"
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_FENCED = frozenset("`~ ")
"""What a fence's line begins with."""
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)")
_LIKE_A_CALL = re.compile(r"^[ \t]*+<call(?=[ >])", re.MULTILINE)
_JSON_STRING = re.compile(r'"(?:[^"\\]++|\\[^\x00-\x1f])*+"?')
_CONTROL = re.compile(r"[\x00-\x1f]")
_RAW = {code: f"\\u{code:04x}" for code in range(32)}
_NOT_IN_NAMES = re.compile(r"[\s<>]+")

Line = Literal["open", "words", "call", "thought"]
"""What a line is; open while that cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    missed: bool = False
    """Something in the text looks like a call and was not one."""
    thought: str = ""


def parse(text: str, key: str) -> Parsed:
    """A model's own reply, its calls apart from its words; without a key there are no calls."""
    reader = Reader(key)
    shown = reader.feed(text) + reader.end()
    missed = bool(key) and (f"<call {key}" in shown or _LIKE_A_CALL.search(shown) is not None)
    thought = "\n".join(reader.thought).strip()
    return Parsed(text=shown.strip(), calls=tuple(reader.calls), missed=missed, thought=thought)


def written(call: ToolCall, key: str) -> str:
    """A call as a model writes it; what a model wrote amiss stays as it was."""
    body = call.malformed
    if body is None:
        body = orjson.dumps(call.arguments).decode()
    return f"<call {key} {label(call.name)}>\n{body}\n{_END}"


def label(name: str) -> str:
    """A tool's name as it may stand in a tag."""
    return _NOT_IN_NAMES.sub("_", name) or NO_NAME


class Reader:
    """Reads a reply as it comes, in any pieces, and gives back what may be shown of it."""

    def __init__(self, key: str) -> None:
        self.calls: list[ToolCall] = []
        self.thought: list[str] = []
        self._opening = f"<call {key}" if key else ""
        self._is: Line = "open"
        self._line: list[str] = []
        self._call: list[str] = []
        self._fence = ""
        self._begun = False
        """Whether anything but blanks has come; thoughts come first or not at all."""
        self._shown: list[str] = []

    def feed(self, words: str) -> str:
        *lines, rest = words.split("\n")
        for line in lines:
            if self._is == "open" and not self._line and self._is_words(line):
                self._shown += (line, "\n")
                if line[:1] in _FENCED:
                    self._turn_fence(line)
                continue
            if self._is == "call" and not self._line and _END not in line:
                self._call.append(line)
                continue
            self._line.append(line)
            if self._is == "words":
                self._shown.append(line)
            self._end_line()
        self._take(rest)
        return self._flush()

    def _is_words(self, line: str) -> bool:
        """Whether a whole line is nothing but words, told fast, as nearly all are."""
        return not line.startswith("<call ") if self._begun else not line or line.isspace()

    def end(self) -> str:
        """The reply is over: what was held back of it."""
        if self._line:
            self._end_line(last=True)
        if self._call:
            self._close(is_closed=False)
        return self._flush()

    def _flush(self) -> str:
        shown, self._shown = "".join(self._shown), []
        return shown

    def _take(self, piece: str) -> None:
        if not piece:
            return
        self._line.append(piece)
        if self._is == "words":
            self._shown.append(piece)
        elif self._is == "open":
            line = "".join(self._line)
            self._is = self._judge(line)
            if self._is == "words":
                self._shown.append(line)

    def _judge(self, line: str, *, is_whole: bool = False) -> Line:
        if self._fence:
            return "words"
        if not self._begun:
            if line.startswith(_THOUGHT):
                return "thought"
            if _THOUGHT.startswith(line) and not is_whole:
                return "open"
        opening = self._opening
        if not opening or len(self.calls) == MOST_CALLS:
            return "words"
        if line.startswith(opening):
            after = line[len(opening) : len(opening) + 1]
            if not after:
                return "call" if is_whole else "open"
            return "call" if after == ">" or after.isspace() else "words"
        return "open" if opening.startswith(line) and not is_whole else "words"

    def _end_line(self, *, last: bool = False) -> None:
        line, self._line = "".join(self._line), []
        if self._is == "open":
            self._is = self._judge(line, is_whole=True)
            if self._is == "words":
                self._shown.append(line)
        match self._is:
            case "call":
                self._call.append(line)
                if line.rstrip().endswith(_END):
                    self._close(is_closed=True)
            case "thought":
                self._think(line, last=last)
            case _:
                self._end_words(line, last=last)

    def _end_words(self, line: str, *, last: bool) -> None:
        self._is = "open"
        self._begun = self._begun or bool(line.strip())
        if not last:
            self._shown.append("\n")
        self._turn_fence(line)

    def _turn_fence(self, line: str) -> None:
        """Begin or end a code fence, if the line does."""
        if mark := _FENCE.match(line):
            if not self._fence:
                self._fence = mark[1]
            elif mark[1].startswith(self._fence) and not line[mark.end() :].strip():
                self._fence = ""

    def _think(self, line: str, *, last: bool) -> None:
        if not self._begun:
            line = line.removeprefix(_THOUGHT)
            self._begun = True
        thought, end, after = line.partition(_THOUGHT_END)
        self.thought.append(thought)
        if end:
            self._shown.append(after.lstrip())
            self._end_words("", last=last)

    def _close(self, *, is_closed: bool) -> None:
        self._is = "open"
        self._begun = True
        raw, self._call = "\n".join(self._call).rstrip(), []
        self.calls.append(_read(raw[len(self._opening) :], is_closed=is_closed))


def _read(raw: str, *, is_closed: bool) -> ToolCall:
    """A call, from what stands behind its key."""
    head, newline, below = raw.removesuffix(_END).partition("\n")
    name, mark, beside = head.partition(">")
    body = (beside + newline + below).strip()
    name = name.strip()[:LONGEST_NAME]
    if not is_closed or not mark:
        lacking = _END if mark else "> behind the name"
        return ToolCall(id="", name=name or NO_NAME, malformed=f"(without {lacking}) {body}")
    given = _object(body or "{}")
    if given is None:
        return ToolCall(id="", name=name or NO_NAME, malformed=body)
    if name:
        return ToolCall(id="", name=name, arguments=given)
    within, arguments = given.get("name"), given.get("arguments")
    if isinstance(within, str) and isinstance(arguments, dict) and len(given) == 2:
        # The form that most models were trained on.
        arguments = cast(dict[str, Any], arguments)
        return ToolCall(id="", name=within[:LONGEST_NAME] or NO_NAME, arguments=arguments)
    return ToolCall(id="", name=NO_NAME, malformed=body)


def _object(body: str) -> dict[str, Any] | None:
    """A JSON object, also one with line breaks in its strings as they are."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        if not _CONTROL.search(body):
            return None
        try:
            value = orjson.loads(_JSON_STRING.sub(lambda found: found[0].translate(_RAW), body))
        except orjson.JSONDecodeError:
            return None
    if not isinstance(value, dict) or _is_too_deep(found := cast(dict[str, Any], value)):
        return None
    return found


def _is_too_deep(value: dict[str, Any]) -> bool:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        parts = [part for whole in level for part in _values(whole)]
        level = [part for part in parts if isinstance(part, (dict, list))]
        if not level:
            return False
    return True


def _values(whole: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return whole.values() if isinstance(whole, dict) else whole


def first_object(text: str) -> str:
    """The first JSON object in a text, wherever it stands, or `ModelGarbled`."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    tries = 64  # each may read all of the text
    while at >= 0 and tries:
        try:
            value, _ = decoder.raw_decode(text, at)
            if _is_too_deep(value):
                break
            return orjson.dumps(value).decode()
        except (ValueError, RecursionError, TypeError):  # orjson's TypeError: no UTF-8, no 64 bits
            pass
        at, tries = text.find("{", at + 1), tries - 1
    raise ModelGarbled(f"Asked for a JSON object, the model said: {text[:200]!r}")
