"""Silence: nudges a model that answers without a tool call, and ends its node after three replies.

Words never complete a node that has tools: nobody reads them. A node without tools is the
exception, because words are all that it can give.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agiraph.core.domain.chat import WAITS, ToolSpec, Transcript, Turn
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.text.spoken_question import ends_in_question
from agiraph.core.domain.work import StopReason
from agiraph.core.policies.written_call import how_to_call, written_call
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.tools.base import Tool

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
