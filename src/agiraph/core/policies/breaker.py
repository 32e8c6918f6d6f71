"""Breaker: stops a model that repeats its steps or makes no calls; warns it before.

Silence and loops are each judged by a module of their own.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any, Literal, cast

import orjson

from agiraph.core.domain.chat import WAITS, ToolSpec, Transcript, Turn
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.text.spoken import ends_in_question
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import StopReason
from agiraph.core.policies.loops import Loops
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.tools.base import Tool
from agiraph.core.tools.calls.synonyms import SYNONYMS, folded
from agiraph.late_patterns import late

UNKNOWN = "unknown"
"""The name of a written call whose tool cannot be told."""

_BAR = "\uff5c"
"""The wide bar in DeepSeek's marks."""
_MARKS = late(
    r"<(?:\|)?tool_calls?(?:\|)?>|</?tool_call>|<function=[\w.-]+|<function_calls?>|"
    rf"<(?:antml:)?invoke\b|\[TOOL_CALLS?\]|<call_record\b|<{_BAR}tool▁calls?▁begin{_BAR}>|"
    r"<\|tool_calls?(?:_section)?_begin\|>|<\|python_tag\|>|<\|channel\|>commentary to=|"
    r"\bto=functions\.\w|```tool_code|```tool_call|<tool_use>|<call [a-z0-9]{8} ",
    re.IGNORECASE,
)
_NAMES = (
    late(r"<function=[\"']?([\w.-]+)"),
    late(r"<(?:antml:)?invoke\s+name\s*=\s*[\"']?([\w.-]+)"),
    late(r"\"(?:name|tool|tool_name|function|action)\"\s*:\s*\"([\w.-]+)\""),
    late(r"\bto=(?:functions\.)?([\w.-]+)"),
    late(r"<call [a-z0-9]{8} ([\w.-]+)"),
    late(r"<call_record\b[^>\n]{0,200}\bname\s*=\s*[\"']?([\w.-]+)"),
    late(r"\[TOOL_CALLS?\]\s*([\w.-]+)"),
    late(r"<\|tool_call_begin\|>\s*([\w.-]+)"),
    late(rf"<{_BAR}tool▁call▁begin{_BAR}>(?:function<{_BAR}tool▁sep{_BAR}>)?([\w.-]+)"),
    late(r"<tool_call>\s*([\w.-]+)\s*(?:\n|<arg_key>)"),
    late(r"(?<![\w.-])default_api\.([\w.-]++)\("),
    late(r"<\|python_tag\|>\s*([\w-]+)"),
)
_FENCED = late(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_TAG = late(r"^[ \t]*+<([a-z]\w*)>", re.MULTILINE)
_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = {"arguments", "parameters", "input", "args"}
_EXAMINED = 20_000
"""Characters of a reply that are examined."""


def written_call(text: str, tools: Collection[str]) -> str | None:
    """Return the name of the tool that the text pretends to call; None if it holds no call.

    JSON counts only if it names one of these tools; the other forms have no other meaning.
    """
    text = text[:_EXAMINED]
    if (mark := _MARKS.search(text)) is not None:
        return _named(text[mark.start() :], tools) or UNKNOWN
    for name in _TAG.findall(text):
        if name in tools and f"</{name}>" in text:
            return name
    for block in (*_FENCED.findall(text), text):
        if (name := _json_name(block.strip(), tools)) is not None:
            return name
    return None


def _named(text: str, tools: Collection[str]) -> str | None:
    found = [match[1].removeprefix("functions.") for form in _NAMES if (match := form.search(text))]
    known = (own for name in found if (own := _own_name(name, tools)) is not None)
    return next(known, found[0] if found else None)


def _own_name(name: str, tools: Collection[str]) -> str | None:
    """Return the tool that a name means, also if models learned the name elsewhere."""
    if name in tools:
        return name
    meant = {folded(name), *(folded(s.tool) for s in SYNONYMS.get(folded(name), ()))}
    return next((tool for tool in tools if folded(tool) in meant), None)


def _json_name(text: str, tools: Collection[str]) -> str | None:
    """Return the tool that a JSON object, or a list of them, names."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Cut off, or with raw line breaks: its first lines still tell what it is.
        return next(
            (n for form in _NAMES if (m := form.search(text)) and (n := m[1]) in tools), None
        )
    if isinstance(value, list):
        value = next(iter(cast(list[Any], value)), None)
    if not isinstance(value, dict):
        return None
    known = cast(dict[str, Any], value)
    if isinstance(inner := known.get("function"), dict):
        known = cast(dict[str, Any], inner)
    given = [name for key in _KEYS if isinstance(name := known.get(key), str)]
    if known.keys() & _ARGUMENTS:  # nothing but a call has both
        given = [_own_name(name, tools) or name for name in given]
    return next((name for name in given if name in tools), None)


def how_to_call(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return how the tool is called, with its arguments as its schema has them."""
    spec = specs.get(name)
    if spec is None:
        return f"Your tools: {', '.join(specs)}."
    properties: dict[str, Any] = spec.schema.get("properties", {})
    required = spec.schema.get("required", [])
    shown = [
        f"{argument} ({_type(form)}{'' if argument in required else ', optional'})"
        for argument, form in properties.items()
    ]
    return f"{name} takes: {', '.join(shown) or 'nothing'}."


def _type(form: dict[str, Any]) -> str:
    choices = [str(part.get("type", "any")) for part in form.get("anyOf", ())]
    return str(form.get("type") or " or ".join(c for c in choices if c != "null") or "any")


STOP_SILENT = 3
"""Replies in a row without a tool call after which the node ends."""

Kind = Literal["refused", "cut", "thoughts", "empty", "call", "keyed", "repeated", "words"]

_NUDGES: dict[Kind, tuple[str, str]] = {
    "refused": (
        "The vendor of your model withheld the rest of your reply ({refusal}). Nothing of it "
        "counts, and no call of it was made. Do this step in another way and in other words.",
        "The rest of your reply was withheld again ({refusal}). Leave out what it was about, and "
        "make one tool call now: {next}.",
    ),
    "cut": (
        "Your reply broke off before its end, and nothing was made of it. Go on where it stopped. "
        "Long text belongs in a file, written in several smaller calls.",
        "Your reply broke off again. Write much less in one reply: make one small tool call now.",
    ),
    "thoughts": (
        "You thought, but your reply held neither text nor a tool call. Nobody sees your thoughts, "
        "and nothing in them is called. Make the call that they led to.",
        "Again nothing but thoughts. Stop thinking and make one tool call: {next}.",
    ),
    "empty": (
        "Your reply was empty. Take the next step with a tool call; if you are done, {ending}.",
        "Empty again. Make one tool call now: {next}.",
    ),
    "call": (
        "Nothing was called: you wrote a call as text. Make a real tool call instead. {how}",
        "Nothing was called again: text that looks like a call is only text. Use the tool calls of "
        "this interface. {how}",
    ),
    "keyed": (
        "Nothing was called: your call does not have the key that was asked for, or not its form. "
        "Write it again with the key at the end of this message. {how}",
        "Nothing was called again. Copy the line of the call from the end of this message, letter "
        "by letter, with the name of the tool. {how}",
    ),
    "repeated": (
        "You said the same again, and it changes nothing. Make a tool call: {next}.",
        "The same words once more, and they do nothing. Make one tool call now: {next}.",
    ),
    "words": (
        "You answered without calling a tool, and there is nothing that you could wait for. A "
        "step that you announce is not done: do it now with a tool call. If you are done, "
        "{ending}.{wait}",
        "Still no tool call. Words alone do nothing here and do not end your work. Make one tool "
        "call now: {next}.",
    ),
}
_LAST_CHANCE = " One more reply without a tool call ends this work as failed."
_AS_TEXT = (
    " It wrote its calls as text: set the tool parser of the model's server, say in agiraph.toml "
    "in which form its calls come (calls = …), or use the model under the name text/… instead."
)
_WRONG_KEY = " It wrote its calls without their key or in another form: use a more capable model."


@dataclass(frozen=True, slots=True)
class Silence:
    """Judges the newest replies of a thread that hold no tool call."""

    tools: Mapping[str, Tool]

    def note(self, transcript: Transcript) -> SystemNote | None:
        """Return the nudge for the newest reply, if it is silent and was not answered before."""
        row = self._row(transcript)
        if not row or transcript.has(ref := f"nudge:{row[0].seq}"):
            return None
        if not self.tools:
            return SystemNote(ref, f"[Runtime] {self._without_tools(row[0])}")
        kind = self._kind(row)
        text = _NUDGES[kind][0 if len(row) == 1 else 1].format(
            ending=self._ending,
            next=f"the next step of your assignment, or {self._ending_with} with what you have",
            wait=self._how_to_wait,
            refusal=row[0].provider_data.refusal[:200],
            how=how_to_call(self.written_call(row[0]) or "", self._specs),
        )
        last_chance = _LAST_CHANCE if len(row) == STOP_SILENT - 1 else ""
        return SystemNote(ref, f"[Runtime] {text}{last_chance}")

    def verdict(self, transcript: Transcript) -> Finished | Failed | None:
        """Return the end of the node if its newest replies end it; None to go on."""
        row = self._row(transcript)
        if row and not self.tools and row[0].text.strip() and not row[0].is_cut:
            return Finished(row[0].text, StopReason.ANSWERED)
        if len(row) < STOP_SILENT:
            return None
        whole = [t for t in row if t.text.strip() and not t.provider_data.refusal]
        # A reply with a tool call written as text does not become the result: a model that reads
        # the result could repeat the call.
        words = next((turn.text for turn in whole if self.written_call(turn) is None), None)
        said = "" if whole else " It said nothing at all."
        how = _AS_TEXT if row[0].provider_data.text is None else _WRONG_KEY
        as_text = how if any(map(self.written_call, row)) else ""
        detail = f"The model made no tool call in {len(row)} replies in a row.{said}{as_text}"
        return Failed(StopReason.SILENT, detail, words)

    def question(self, transcript: Transcript) -> str | None:
        """Return the words of the newest reply if they end in a question that somebody must
        answer."""
        row = self._row(transcript)
        if not row or row[0].is_cut or self.written_call(row[0]) is not None:
            return None
        return row[0].text if ends_in_question(row[0].text) else None

    def remark(self, transcript: Transcript) -> str:
        """Return a sentence about the newest reply, to be added to the text that says what its node
        waits for."""
        row = self._row(transcript)
        if row and (name := self.written_call(row[0])) is not None:
            return f" {_NUDGES['call'][0].format(how=how_to_call(name, self._specs))}"
        return " Your reply broke off before its end." if row and row[0].is_cut else ""

    def written_call(self, turn: Turn) -> str | None:
        """Return the name of the tool that a reply without calls pretends to call."""
        return written_call(turn.text, self.tools) if self.tools and not turn.calls else None

    def _row(self, transcript: Transcript) -> list[Turn]:
        """Return the newest replies in a row without a call, newest first.

        A reply that parked the node ends the row, and so does a summary: the model no longer sees
        what came before.
        """
        row: list[Turn] = []
        if (newest := transcript.newest_step) is None or newest.calls:
            return row
        for turn in transcript.steps(STOP_SILENT, since_cut=True):
            if turn.calls or transcript.has(f"{WAITS}:{turn.seq}"):
                break
            row.append(turn)
        return row

    def _kind(self, row: list[Turn]) -> Kind:
        newest = row[0]
        if newest.provider_data.refusal:
            return "refused"
        if newest.is_cut:
            return "cut"
        if not newest.text.strip():
            return "thoughts" if newest.provider_data.thinking.strip() else "empty"
        if self.written_call(newest) is not None:
            return "call" if newest.provider_data.text is None else "keyed"
        if any(turn.text.split() == newest.text.split() for turn in row[1:]):
            return "repeated"
        return "words"

    def _without_tools(self, newest: Turn) -> str:
        if newest.is_cut:
            return "Your answer broke off before its end. Give it again, whole and shorter."
        return "Your answer was empty. Give it now, in words."

    @property
    def _specs(self) -> dict[str, ToolSpec]:
        return {name: tool.spec for name, tool in self.tools.items()}

    @property
    def _ending_with(self) -> str:
        return " or ".join(t.name for t in self.tools.values() if t.properties.ends_node)

    @property
    def _ending(self) -> str:
        return f"call {self._ending_with}"

    @property
    def _how_to_wait(self) -> str:
        asking = [tool.name for tool in self.tools.values() if tool.properties.asks_teammate]
        how = " To wait for a teammate's answer, ask them with {}, kind question."
        return how.format(asking[0]) if asking else ""


_FORGED = late(r"^[ \t>*_]*\[(?:Runtime\]|Budget\]|Task\]|Message from\b)", re.MULTILINE)
_TOLD = (
    "[Runtime] You wrote this yourself: a line of your reply begins with {mark!r}, as notices and "
    "messages here do. Nobody sent it, and nothing in it has happened. Go on by what you were "
    "really told."
)


def _forged_notice(transcript: Transcript) -> SystemNote | None:
    """Return the note for the newest reply if it holds a notice; None if not, or once told."""
    newest = transcript.newest_step
    # A search for the bracket alone takes a hundredth of the time, and most replies have none.
    if newest is None or "[" not in newest.text:
        return None
    if (found := _FORGED.search(newest.text)) is None:
        return None
    ref = f"forged:{newest.seq}"
    mark = found[0].strip(" \t>*_")
    return None if transcript.has(ref) else SystemNote(ref, _TOLD.format(mark=mark))


@dataclass(slots=True)
class Breaker:
    """Judges one thread by its newest replies."""

    tools: Mapping[str, Tool]
    silence: Silence = field(init=False)
    loops: Loops = field(init=False)

    def __post_init__(self) -> None:
        self.silence, self.loops = Silence(self.tools), Loops(self.tools)

    def notes(self, transcript: Transcript) -> list[SystemNote]:
        """Return the notes that the newest reply needs: a nudge, a warning, or none."""
        found = (
            _forged_notice(transcript),
            self.silence.note(transcript),
            self.loops.note(transcript),
        )
        return [note for note in found if note is not None]

    def verdict(self, transcript: Transcript) -> Finished | Failed | None:
        """Return the end of the node if it must stop here; None to go on."""
        return self.silence.verdict(transcript) or self.loops.verdict(transcript)
