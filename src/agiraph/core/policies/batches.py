"""Batches: finds calls of a reply that build on a call before them which failed.

A model writes all calls of a reply before it reads the first answer. If a call fails, a later one
that names the same file, node or agent may rest on a guess.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, cast

import orjson

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.tools.base import Tool

MAX_READINGS = 2
"""How often the same text is given in full."""
_SHOWN = 80


@dataclass(slots=True)
class _Reading:
    text: str
    call_id: str
    step: int
    """How many replies the thread had when the text was given."""
    times: int = 1


@dataclass(slots=True)
class Readings:
    """What was read in one thread since its last summary."""

    tools: Mapping[str, Tool]
    _position: int = 0
    """The index of the first turn that was not examined yet; each is examined once."""
    _steps: int = 0
    _found: dict[bytes, _Reading] = field(default_factory=dict[bytes, _Reading])
    _calls: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def shortened(
        self, transcript: Transcript, call: ToolCall, answer: Done, *, stored: str
    ) -> Done:
        """Return the answer, or a line in its place if the thread holds this text twice.

        `stored` is the answer's text as the thread would hold it.
        """
        tool = self.tools.get(call.name)
        if answer.failed or tool is None or not tool.properties.reads_file:
            return answer
        self._examine(transcript)
        found = self._found.get(_key(call))
        if found is None or found.text != stored or found.times < MAX_READINGS:
            return answer
        begins = answer.text.strip()[:_SHOWN]
        ago = self._steps - found.step
        text = (
            "Unchanged since you read it: the text stands above, in the answer to your call "
            f"{found.call_id} ({counted(ago, 'reply', 'replies')} ago). It begins with "
            f"{begins!r}. Work with that, or read something else."
        )
        return replace(answer, text=text, is_repeated=True)

    def _examine(self, transcript: Transcript) -> None:
        if self._position < transcript.first:
            self._position = transcript.first
            self._found.clear()
            self._calls.clear()
        for turn in transcript.turns[self._position :]:
            if turn.role == "assistant":
                self._steps += 1
                self._calls.update((c.id, _key(c)) for c in turn.calls if self._reads(c))
            elif turn.role == "tool" and not turn.failed and turn.ref in self._calls:
                self._count(self._calls[turn.ref], turn)
        self._position = len(transcript.turns)

    def _count(self, key: bytes, answer: Turn) -> None:
        before = self._found.get(key)
        if before is not None and answer.text == before.text:
            before.times += 1
        elif before is None or not answer.is_repeated:
            assert answer.ref is not None
            self._found[key] = _Reading(answer.text, answer.ref, self._steps)

    def _reads(self, call: ToolCall) -> bool:
        tool = self.tools.get(call.name)
        return tool is not None and tool.properties.reads_file


def _key(call: ToolCall) -> bytes:
    return orjson.dumps([call.name, call.arguments], option=orjson.OPT_SORT_KEYS)


_SHORTEST, _LONGEST = 3, 200
"""Characters of a name that two calls may share; shorter ones are shared by chance."""
_IN_COMMAND = re.compile(r"(?<![\w./~-])[\w./~-]*[./][\w./~-]+")
"""A word of a command that looks like a path."""

NOT_MADE = (
    "Not made: {failed} before it in this reply failed, and this call names {thing!r} too. Calls "
    "of this reply so far: {calls}. Read the answer of the failed one; if this call is still "
    "right, make it again."
)
ALTHOUGH = (
    "[Runtime] Made although {failed} before it in this reply failed, which names {thing!r} too. "
    "Check whether this call was still right."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBasis:
    """A failed call that a later call of the same reply builds on."""

    name: str
    thing: str
    """What both calls name."""
    was_made: bool
    """Whether the failed call was made at all, as a command is that ends with an error."""
    calls: str

    def refusal(self) -> str:
        """Return the answer to the later call if the runtime does not make it."""
        return NOT_MADE.format(failed=self.name, thing=self.thing, calls=self.calls)

    def remark(self) -> str:
        """Return the sentence that is added to the later call's answer if the runtime makes it."""
        return ALTHOUGH.format(failed=self.name, thing=self.thing)


def failed_basis(
    transcript: Transcript, call: ToolCall, tools: Mapping[str, Tool]
) -> FailedBasis | None:
    """Return the failed call of the same reply that this call builds on; None if there is none.

    Only calls that give work away or must not be made twice are held back.
    """
    tool, reply = tools.get(call.name), transcript.last_reply
    if tool is None or reply is None or len(reply.calls) < 2:
        return None
    # An edit needs no such care: it is refused if the file is not as its model believes.
    if tool.properties.writes_files or not (tool.properties.delegates or tool.effect == "once"):
        return None
    answers = {turn.ref: turn for turn in _answers(transcript, reply)}
    for earlier in reply.calls:
        if earlier.id == call.id:
            return None
        answer = answers.get(earlier.id)
        if answer is None or not answer.failed or not _may_matter(earlier, call, tools):
            continue
        thing = _shared(earlier, call, tools)
        if thing is not None:
            return FailedBasis(
                name=f"{earlier.name} ({earlier.id})",
                thing=thing,
                was_made=transcript.intent(earlier.id) is not None,
                calls=_listed(reply.calls, answers, transcript, tools),
            )
    return None


def _answers(transcript: Transcript, reply: Turn) -> Iterator[Turn]:
    for turn in reversed(transcript.turns):
        if turn.seq <= reply.seq:
            return
        if turn.role == "tool":
            yield turn


def _may_matter(earlier: ToolCall, call: ToolCall, tools: Mapping[str, Tool]) -> bool:
    """Whether a failed call can be what another one builds on."""
    first, second = tools.get(earlier.name), tools[call.name]
    if first is None:
        return True
    if first.properties.ends_node:
        return False
    # Two tasks for one agent do not need each other.
    return first is not second or first.properties.runs_commands


def _shared(earlier: ToolCall, call: ToolCall, tools: Mapping[str, Tool]) -> str | None:
    """Return a name in both calls."""
    said = "\n".join(_texts(call.arguments))
    for thing in _named_in(earlier, tools.get(earlier.name)):
        if re.search(rf"(?<![\w-]){re.escape(thing)}(?![\w-])", said):
            return thing
    return None


def _named_in(call: ToolCall, tool: Tool | None) -> Iterator[str]:
    """Yield what a call names: files, nodes, agents and addresses."""
    schema = {} if tool is None else tool.spec.schema
    forms: dict[str, dict[str, Any]] = schema.get("properties", {})
    runs_commands = tool is not None and tool.properties.runs_commands
    for name, value in call.arguments.items():
        if not isinstance(value, str) or "enum" in forms.get(name, {}):
            continue
        words = _IN_COMMAND.findall(value[:4000]) if runs_commands else [value.strip()]
        for word in words:
            if _SHORTEST <= len(word) <= _LONGEST and not any(map(str.isspace, word)):
                yield word


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast(dict[str, Any], value).values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from _texts(part)


def _listed(
    calls: Iterable[ToolCall],
    answers: Mapping[str | None, Turn],
    transcript: Transcript,
    tools: Mapping[str, Tool],
) -> str:
    """Return each answered call with what became of it."""
    shown: list[str] = []
    for call in calls:
        if (answer := answers.get(call.id)) is None:
            continue
        tool = tools.get(call.name)
        was_begun = tool is None or tool.effect != "once" or transcript.intent(call.id) is not None
        became = "made" if not answer.failed else "failed" if was_begun else "not made"
        shown.append(f"{call.name} ({call.id}): {became}")
    return ", ".join(shown)


LONGEST_SLEEP_S = 30.0
"""A longer sleep is refused while delegated work is open."""
MAX_LOOKS = 4
"""Replies that are examined for an earlier look, newest first."""

_SLEEP = re.compile(r"\bsleep\s+((?:\d+(?:\.\d+)?[smhd]?\s*)+)|\btime\.sleep\(\s*(\d+(?:\.\d+)?)")
_LOOP = re.compile(r"\b(?:while|until|for)\b")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_asleep(command: str) -> float:
    """Return how long a shell command sleeps at least; a sleep in a loop counts as endless."""
    total = 0.0
    for shell, python in _SLEEP.findall(command):
        total += float(python) if python else sum(map(_seconds, shell.split()))
    return float("inf") if total and _LOOP.search(command) else total


def _seconds(text: str) -> float:
    return float(text.rstrip("smhd")) * _UNITS.get(text[-1], 1.0)


def earlier_look(transcript: Transcript, call: ToolCall, tools: Mapping[str, Tool]) -> str | None:
    """Return the answer to the same look in a reply before this one, with nothing but looks since;
    None if this is the first look."""
    for reply in transcript.steps(MAX_LOOKS)[1:]:
        if not reply.calls or not all(_polls(made, tools) for made in reply.calls):
            return None
        for made in reply.calls:
            if (made.name, made.arguments) == (call.name, call.arguments):
                return _answer_to(transcript, made.id, reply)
    return None


def _polls(call: ToolCall, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(call.name)
    return tool is not None and tool.properties.polls


def _answer_to(transcript: Transcript, call_id: str, reply: Turn) -> str | None:
    for turn in reversed(transcript.turns):
        if turn.seq <= reply.seq:
            return None
        if turn.role == "tool" and turn.ref == call_id:
            return turn.text
    return None
