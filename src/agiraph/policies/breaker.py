"""Breaker: detects a model that repeats its calls or makes none; warns it once, then stops it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from agiraph.domain.chat import AGAIN, WAITS, Transcript, Turn
from agiraph.domain.outcomes import Failed, Finished
from agiraph.domain.work import StopReason
from agiraph.services.lifecycle.journal import SystemNote
from agiraph.tools.base import Tool

WARN_REPEATS = 3
STOP_REPEATS = 5
STOP_EMPTY = 3
PERIODS = (1, 2, 3)
"""How many steps make a cycle: one step repeated, or two or three in turn."""
MAX_REPLIES = STOP_REPEATS * max(PERIODS)
"""Replies that are examined, newest first: cycles are short, threads are long."""

_REPEATING = (
    "[Runtime] You go in circles: the same calls, {times} times over, with the same outcome. It "
    "will not turn out differently. Do something else, ask, or hand in what you have."
)
_SILENT = (
    "[Runtime] You answered without calling a tool. If you are done, hand in with {ending}; "
    "if not, take the next step."
)


@dataclass(slots=True)
class Breaker:
    """Judges one thread by its newest replies."""

    tools: Mapping[str, Tool]
    _counted: tuple[int, int] = (0, 0)
    """The thread's length when repeats were last counted, and their number: a cache."""

    def notes(self, transcript: Transcript) -> list[SystemNote]:
        """Return the warning that the thread needs now, if any: silent, or repeating its calls."""
        newest = transcript.replies(1)
        if not newest:
            return []
        [last] = newest
        if not last.calls:
            if transcript.has(f"{WAITS}{last.seq}"):
                return []  # the node waits, and the model was told for what
            endings = [tool.name for tool in self.tools.values() if tool.properties.ends_node]
            return [SystemNote(f"nudge:{last.seq}", _SILENT.format(ending=" or ".join(endings)))]
        times = self._repeats(transcript)
        if times < WARN_REPEATS or self._warned(transcript):
            return []
        return [SystemNote(f"circle:{last.seq}", _REPEATING.format(times=times))]

    def verdict(self, transcript: Transcript) -> Finished | Failed | None:
        """Return the end of the node if it must stop here; None to go on.

        A reply without calls is the answer for a model without tools, and for others once the
        model repeats it after the warning.
        """
        silent = self._silence(transcript)
        if silent and not self.tools:
            return _answered(silent[0])
        if len(silent) > 1 and silent[0].text.strip():
            return _answered(silent[0])
        if len(silent) >= STOP_EMPTY:
            return Failed(
                StopReason.SILENT, f"The model said nothing, {len(silent)} times running."
            )
        if self._repeats(transcript) >= STOP_REPEATS:
            times = f"{STOP_REPEATS} times over, with the same outcome"
            return Failed(
                StopReason.LOOPING, f"The model went in circles: the same calls, {times}."
            )
        return None

    def _silence(self, transcript: Transcript) -> list[Turn]:
        """Return the newest replies in a row without a call, newest first.

        A reply in words that parked the node ends the row.
        """
        silent: list[Turn] = []
        for turn in transcript.replies(STOP_EMPTY):
            if turn.calls or transcript.has(f"{WAITS}{turn.seq}"):
                break
            silent.append(turn)
        return silent

    def _repeats(self, transcript: Transcript) -> int:
        """Return how often the newest step, or cycle of steps, was repeated in a row."""
        length = len(transcript.turns)
        if self._counted[0] != length:
            self._counted = length, self._count(transcript)
        return self._counted[1]

    def _count(self, transcript: Transcript) -> int:
        if not self._may_repeat(transcript):
            return 0
        steps = self._steps(transcript)
        return max((_run_length(steps, period) for period in PERIODS), default=0)

    def _may_repeat(self, transcript: Transcript) -> bool:
        """Whether the newest reply equals a recent one: a cheap test, as most steps are new."""
        newest: Turn | None = None
        seen = 0
        for turn in transcript.replies(MAX_REPLIES):
            if self._polls(turn):
                continue
            if newest is None:
                newest = turn
            elif _has_same_calls(newest, turn):
                return True
            seen += 1
            if seen > PERIODS[-1]:
                break
        return False

    def _steps(self, transcript: Transcript) -> list[bytes]:
        """Return each reply's calls and answers as bytes, newest first, without polling."""
        answers: dict[str, str] = {}
        steps: list[bytes] = []
        for turn in _recent_turns(transcript):
            if turn.role == "tool" and turn.ref:
                answers[turn.ref] = turn.text
            if turn.role != "assistant" or self._polls(turn):
                continue
            if not turn.calls or any(c.id not in answers for c in turn.calls):
                break
            # With the answers: a call that is repeated until it succeeds, such as one that polls a
            # build, gets another answer each time. Keys are sorted, as models write arguments in
            # any order.
            made = [(c.name, c.arguments, c.malformed, answers[c.id]) for c in turn.calls]
            steps.append(orjson.dumps(made, option=orjson.OPT_SORT_KEYS))
        return steps

    def _polls(self, turn: Turn) -> bool:
        for call in turn.calls:
            tool = self.tools.get(call.name)
            if tool is None or not tool.properties.polls:
                return False
        return bool(turn.calls)

    def _warned(self, transcript: Transcript) -> bool:
        return any(t.ref and t.ref.startswith("circle:") for t in _recent_turns(transcript))


def _has_same_calls(one: Turn, other: Turn) -> bool:
    made = [(call.name, call.arguments) for call in one.calls]
    return made == [(call.name, call.arguments) for call in other.calls]


def _answered(turn: Turn) -> Finished:
    return Finished(turn.text, StopReason.ANSWERED)


def _recent_turns(transcript: Transcript) -> Iterator[Turn]:
    """Yield the turns of the newest replies, newest first, back to the last retry."""
    replies = 0
    for turn in reversed(transcript.turns):
        if turn.ref is not None and turn.ref.startswith(AGAIN):
            return
        yield turn
        replies += turn.role == "assistant"
        if replies == MAX_REPLIES:
            return


def _run_length(steps: Sequence[bytes], period: int) -> int:
    """Return how many times in a row the list repeats its first `period` steps."""
    pattern = steps[:period]
    # One step repeated four times is not also a cycle of two repeated twice.
    if len(pattern) < period or (period > 1 and len(set(pattern)) == 1):
        return 0
    times = 0
    while steps[times * period : (times + 1) * period] == pattern:
        times += 1
    return times if times > 1 or period == 1 else 0
