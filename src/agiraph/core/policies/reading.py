"""Reading: answers the third reading of an unchanged file with a line that says where its text is.

It counts from the last summary on: what stands before a summary is no longer shown to the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.text.plurals import counted
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
