"""Breaker: notices a model that goes in circles or falls silent; warns once, then stops it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from agiraph.domain.chat import AGAIN, WAITS, Transcript, Turn
from agiraph.domain.outcomes import Failed, Finished
from agiraph.domain.work import StopReason
from agiraph.services.lifecycle.journal import Notice
from agiraph.tools.base import Tool

WARN_REPEATS = 3
STOP_REPEATS = 5
STOP_EMPTY = 3
PERIODS = (1, 2, 3)
"""The same step over and over, or two or three in turn."""
LOOKED_AT = STOP_REPEATS * max(PERIODS)
"""Replies that are looked at: circles are short, threads are long."""

_CIRCLE = (
    "[Runtime] You go in circles: the same calls, {times} times over, with the same outcome. It "
    "will not turn out differently. Do something else, ask, or hand in what you have."
)
_SILENT = (
    "[Runtime] You answered without calling a tool. If you are done, hand in with {ending}; "
    "if not, take the next step."
)


@dataclass(slots=True)
class Breaker:
    tools: Mapping[str, Tool]
    _counted: tuple[int, int] = (0, 0)
    """How long the thread was when repeats were last counted, and how many there were."""

    def notices(self, transcript: Transcript) -> list[Notice]:
        said = transcript.replies(1)
        if not said:
            return []
        [last] = said
        if not last.calls:
            if transcript.has(f"{WAITS}{last.seq}"):
                return []  # it was told what it waits for
            endings = [tool.name for tool in self.tools.values() if tool.properties.ends_node]
            return [Notice(f"nudge:{last.seq}", _SILENT.format(ending=" or ".join(endings)))]
        times = self._repeats(transcript)
        if times < WARN_REPEATS or self._warned(transcript):
            return []
        return [Notice(f"circle:{last.seq}", _CIRCLE.format(times=times))]

    def verdict(self, transcript: Transcript) -> Finished | Failed | None:
        """How the node ends here, if this cannot go on."""
        silent = self._silence(transcript)
        if silent and not self.tools:
            return _said(silent[0])
        if len(silent) > 1 and silent[0].text.strip():
            return _said(silent[0])
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
        """The newest replies without a call, newest first, up to one that had any.

        A reply in words that was taken for waiting is none of them.
        """
        silent: list[Turn] = []
        for turn in transcript.replies(STOP_EMPTY):
            if turn.calls or transcript.has(f"{WAITS}{turn.seq}"):
                break
            silent.append(turn)
        return silent

    def _repeats(self, transcript: Transcript) -> int:
        """How often the newest step, or pair or triple of steps, has been taken in a row."""
        length = len(transcript.turns)
        if self._counted[0] != length:
            self._counted = length, self._count(transcript)
        return self._counted[1]

    def _count(self, transcript: Transcript) -> int:
        if not self._resembles(transcript):
            return 0
        steps = self._steps(transcript)
        return max((_run_length(steps, period) for period in PERIODS), default=0)

    def _resembles(self, transcript: Transcript) -> bool:
        """A cheap first look, as nearly every step is a new one."""
        newest: Turn | None = None
        seen = 0
        for turn in transcript.replies(LOOKED_AT):
            if self._polls(turn):
                continue
            if newest is None:
                newest = turn
            elif _alike(newest, turn):
                return True
            seen += 1
            if seen > PERIODS[-1]:
                break
        return False

    def _steps(self, transcript: Transcript) -> list[bytes]:
        """What was called and what came of it, newest first; polling counts as no step."""
        answers: dict[str, str] = {}
        steps: list[bytes] = []
        for turn in _newest(transcript):
            if turn.role == "tool" and turn.ref:
                answers[turn.ref] = turn.text
            if turn.role != "assistant" or self._polls(turn):
                continue
            if not turn.calls or any(c.id not in answers for c in turn.calls):
                break
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
        return any(t.ref and t.ref.startswith("circle:") for t in _newest(transcript))


def _alike(one: Turn, other: Turn) -> bool:
    made = [(call.name, call.arguments) for call in one.calls]
    return made == [(call.name, call.arguments) for call in other.calls]


def _said(turn: Turn) -> Finished:
    return Finished(turn.text, StopReason.ANSWERED)


def _newest(transcript: Transcript) -> Iterator[Turn]:
    """The entries of the thread, newest first, as far back as it is looked at."""
    replies = 0
    for turn in reversed(transcript.turns):
        if turn.ref is not None and turn.ref.startswith(AGAIN):
            return
        yield turn
        replies += turn.role == "assistant"
        if replies == LOOKED_AT:
            return


def _run_length(steps: Sequence[bytes], period: int) -> int:
    """How many times in a row the first `period` steps stand at the head of the list."""
    pattern = steps[:period]
    if len(pattern) < period or (period > 1 and len(set(pattern)) == 1):
        return 0
    times = 0
    while steps[times * period : (times + 1) * period] == pattern:
        times += 1
    return times if times > 1 or period == 1 else 0
