"""Loops: detects a model that repeats its steps; warns it once, then ends its node.

A step is a reply with the answers to its calls. Only the newest steps are examined: cycles are
short, threads are long.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import orjson

from agiraph.core.domain.chat import AGAIN, ToolCall, Transcript, Turn
from agiraph.core.domain.outcomes import Failed
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import StopReason
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.tools.base import Tool
from agiraph.late_patterns import late

_EXAMINED = 4000
"""Characters of an answer that are compared, half from its beginning and half from its end."""
_VOLATILE = late(
    "|".join(
        (
            # Dates with or without a time, and times of day.
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
            r"(?:Z|[+-]\d\d:?\d\d| ?UTC)?)?\b",
            r"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:\w{3}\s+\d{1,2}|\d{1,2}\s+\w{3})\b",
            r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]m)?\b",
            # Durations and sizes of time: 0.31s, 12 ms, 3 minutes.
            r"\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|msec|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b",
            # UUIDs, ids such as node_01j9…, hashes and addresses in memory.
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"\b0x[0-9a-f]+\b",
            r"\b(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])(?:[a-z]+_[0-9a-z]{8,}|[0-9a-f]{12,})\b",
            # Processes, and numbers of tries.
            r"\b(?:pid|process|thread|tid|port|job)\b[\s:=#]*\d+",
            r"\b(?:attempt|try|retry|retries|iteration|round|run|tick|count|counter|seq|request)\b"
            r"[\s:=#(]*\d+(?:\s?(?:/|of)\s?\d+)?",
            r"(?<=\[)\d{3,}(?=\])",
            r"/tmp/[\w./-]+",
        )
    ),
    re.IGNORECASE,
)
_NUMBER = late(r"\d+(?:[.,]\d+)*")
_QUOTED = late(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|«[^«»\n]*»|“[^“”\n]*”")


def outcome(text: str, *, failed: bool) -> str:
    """Return the answer without times, durations, counters and ids.

    In a failure no number counts. A success may count something up, such as the lines of a log, and
    that is progress.
    """
    examined = text if len(text) <= _EXAMINED else text[: _EXAMINED // 2] + text[-_EXAMINED // 2 :]
    normal = _VOLATILE.sub("#", examined)
    return _NUMBER.sub("#", normal) if failed else normal


def complaint(text: str, arguments: Iterable[object]) -> str:
    """Return the message of a failed call without what the call's own arguments put into it."""
    normal = outcome(text, failed=True)
    for value in sorted({str(v) for v in arguments if str(v).strip()}, key=len, reverse=True):
        normal = normal.replace(_NUMBER.sub("#", _VOLATILE.sub("#", value)), "@")
    return _QUOTED.sub("@", normal)


WARN_REPEATS, STOP_REPEATS = 3, 5
PERIODS = (1, 2, 3, 4, 5, 6)
"""How many steps make a cycle: one step repeated, or up to six in turn."""
WARN_FAILURES, STOP_FAILURES = 5, 8
"""Steps in which the same tool fails with the same message, whatever its arguments and whatever is
said or looked up in between; a success of the tool, or something written, begins anew."""
WARN_SAME_FAILURE, STOP_SAME_FAILURE = 10, 15
"""Failures of the very same call with the same message and the same numbers, whatever is done in
between."""
MAX_DIFFERENT = 6
WARN_ROTATION, STOP_ROTATION = 24, 30
"""Steps that hold no more than MAX_DIFFERENT different ones, in any order, and write nothing."""
MAX_STEPS = 60
"""Steps that are examined, newest first: enough for two others between two failures."""
MAX_OUTCOMES = 200
_UNCHANGED = "unchanged"

_WARNING = (
    "[Runtime] You go in circles: {what}. It will not turn out differently. Do something else, "
    "ask, or submit what you have; if it goes on like this, your work is ended."
)


class _Failure(NamedTuple):
    tool: str
    message: str
    """What it said, without what the call's own arguments put into it, and without numbers."""
    whole: bytes
    """The call with its answer, with the numbers."""


class _Step(NamedTuple):
    key: bytes
    """The calls and what came of them, for comparison."""
    failures: Sequence[_Failure]
    succeeded: frozenset[str]
    """The tools of which a call succeeded."""
    writes: bool


class _Circle(NamedTuple):
    what: str
    must_stop: bool


@dataclass(slots=True)
class Loops:
    """Judges one thread by its newest steps."""

    tools: Mapping[str, Tool]
    _judged: tuple[int, _Circle | None] = (0, None)
    """A cache: how many turns the thread had when it was last examined, and the loop found then."""
    _outcomes: dict[int, tuple[str, _Failure | None]] = field(
        default_factory=dict[int, tuple[str, _Failure | None]]
    )
    """A cache of normalized answers by turn number, because normalizing a long one is slow."""

    def note(self, transcript: Transcript) -> SystemNote | None:
        """Return the warning that the thread needs now, if any."""
        circle = self._circle(transcript)
        if circle is None or self._warned(transcript):
            return None
        seq = transcript.steps(1)[0].seq
        return SystemNote(f"circle:{seq}", _WARNING.format(what=circle.what))

    def verdict(self, transcript: Transcript) -> Failed | None:
        """Return the end of the node if it must stop here; None to go on."""
        circle = self._circle(transcript)
        if circle is None or not circle.must_stop:
            return None
        return Failed(StopReason.LOOPING, f"The model went in circles: {circle.what}.")

    def _circle(self, transcript: Transcript) -> _Circle | None:
        length = len(transcript.turns)
        if self._judged[0] != length:
            self._judged = length, self._judge(transcript)
        return self._judged[1]

    def _judge(self, transcript: Transcript) -> _Circle | None:
        if not self._is_suspicious(transcript):
            return None
        steps, looks = self._steps(transcript)
        return (
            _repeated(steps)
            or _repeated(looks, periods=(1,))
            or _failing(steps)
            or _same_failure(steps)
            or _idle(steps)
        )

    def _is_suspicious(self, transcript: Transcript) -> bool:
        """Whether the newest step may be part of a circle: a cheap test, as most steps are new."""
        newest = transcript.newest_step
        if newest is None or not newest.calls:
            return False
        # The first call's arguments alone, as most steps differ in them.
        if transcript.alike(MAX_STEPS) >= WARN_REPEATS:
            older = transcript.steps(MAX_STEPS)[1:]
            if sum(_has_same_calls(newest, turn) for turn in older) >= WARN_REPEATS - 1:
                return True
        # The newest reply's answers stand behind it; further back, words may stand between calls.
        if not any(_has_failed(turn) for turn in transcript.turns[-len(newest.calls) :]):
            return False
        return sum(map(_has_failed, _recent_turns(transcript))) >= WARN_FAILURES

    def _steps(self, transcript: Transcript) -> tuple[list[_Step], list[_Step]]:
        """Return the newest steps, newest first, without those that only look how work stands,
        and the looks since the last other step."""
        answers: dict[str, Turn] = {}
        steps: list[_Step] = []
        looks: list[_Step] = []
        unchanged: dict[bytes, str] = {}
        for turn in _recent_turns(transcript):
            if turn.role == "tool" and turn.ref:
                answers[turn.ref] = turn
            # Words between the calls hide no circle; they are counted by `Silence`.
            if turn.role != "assistant" or not turn.calls:
                continue
            if any(call.id not in answers for call in turn.calls):
                break
            # The model was told to repeat them: that is no circle, however many messages come.
            if all(answers[call.id].is_held_back for call in turn.calls):
                continue
            step = self._step(turn, answers, unchanged)
            if not self._polls(turn):
                steps.append(step)
            elif not steps:
                looks.append(step)
        return steps, looks

    def _step(self, turn: Turn, answers: Mapping[str, Turn], unchanged: dict[bytes, str]) -> _Step:
        made: list[object] = []
        failures: list[_Failure] = []
        succeeded: set[str] = set()
        writes = False
        for call in turn.calls:
            answer = answers[call.id]
            outcome, failure = self._outcome(call, answer)
            made.append((*_identity(call), _whole_outcome(call, answer, outcome, unchanged)))
            if failure is not None:
                failures.append(failure)
            else:
                succeeded.add(call.name)
                writes = writes or self._writes(call)
        # Keys are sorted, as models write arguments in any order.
        key = orjson.dumps(made, option=orjson.OPT_SORT_KEYS)
        return _Step(key, failures, frozenset(succeeded), writes)

    def _outcome(self, call: ToolCall, answer: Turn) -> tuple[str, _Failure | None]:
        """Return what came of a call, and its failure if it failed."""
        if (known := self._outcomes.get(answer.seq)) is not None:
            return known
        failure = None
        if answer.failed:
            message = complaint(answer.text, call.arguments.values())
            answered = outcome(answer.text, failed=False)
            whole = orjson.dumps([_identity(call), answered], option=orjson.OPT_SORT_KEYS)
            failure = _Failure(call.name, message, whole)
        found = outcome(answer.text, failed=answer.failed), failure
        if len(self._outcomes) > MAX_OUTCOMES:
            self._outcomes.clear()
        self._outcomes[answer.seq] = found
        return found

    def _writes(self, call: ToolCall) -> bool:
        tool = self.tools.get(call.name)
        return tool is not None and (tool.properties.writes_files or tool.properties.delegates)

    def _polls(self, turn: Turn) -> bool:
        for call in turn.calls:
            tool = self.tools.get(call.name)
            if tool is None or not tool.properties.polls:
                return False
        return bool(turn.calls)

    def _warned(self, transcript: Transcript) -> bool:
        return any(t.note == "circle" for t in _recent_turns(transcript))


def _repeated(steps: Sequence[_Step], periods: Sequence[int] = PERIODS) -> _Circle | None:
    keys = [step.key for step in steps]
    times = max((_run_length(keys, period) for period in periods), default=0)
    if times < WARN_REPEATS:
        return None
    what = f"the same calls, {min(times, STOP_REPEATS)} times over, with the same outcome"
    return _Circle(what, times >= STOP_REPEATS)


def _failing(steps: Sequence[_Step]) -> _Circle | None:
    """Return the circle of the newest failures, if one of them came again and again and neither its
    tool succeeded nor anything was written in between."""
    times: Counter[tuple[str, str]] = Counter()
    succeeded: set[str] = set()
    for step in steps:
        if step.writes:
            break
        times.update({(f.tool, f.message) for f in step.failures if f.tool not in succeeded})
        succeeded |= step.succeeded
    most = max((times[f.tool, f.message] for f in _newest_failures(steps)), default=0)
    if most < WARN_FAILURES:
        return None
    what = f"the same tool failed {most} times with the same message"
    return _Circle(what, most >= STOP_FAILURES)


def _same_failure(steps: Sequence[_Step]) -> _Circle | None:
    times = Counter(whole for step in steps for whole in {f.whole for f in step.failures})
    most = max((times[f.whole] for f in _newest_failures(steps)), default=0)
    if most < WARN_SAME_FAILURE:
        return None
    what = f"the same call failed {most} times with the same outcome"
    return _Circle(what, most >= STOP_SAME_FAILURE)


def _newest_failures(steps: Sequence[_Step]) -> Sequence[_Failure]:
    return next((step.failures for step in steps if step.failures), ())


def _idle(steps: Sequence[_Step]) -> _Circle | None:
    idle = 0
    seen: set[bytes] = set()
    for step in steps:
        seen.add(step.key)
        if step.writes or len(seen) > MAX_DIFFERENT:
            break
        idle += 1
    if idle < WARN_ROTATION:
        return None
    what = f"in the last {idle} steps you took the same few again and again and wrote nothing"
    return _Circle(what, idle >= STOP_ROTATION)


def _identity(call: ToolCall) -> tuple[str, object, str | None]:
    return call.name, call.arguments, call.malformed


def _has_same_calls(one: Turn, other: Turn) -> bool:
    return len(one.calls) == len(other.calls) and all(
        mine.name == theirs.name and mine.arguments == theirs.arguments
        for mine, theirs in zip(one.calls, other.calls, strict=True)
    )


def _whole_outcome(call: ToolCall, answer: Turn, outcome: str, unchanged: dict[bytes, str]) -> str:
    """Return a call's outcome. A line that says that a file is unchanged counts as the text that
    stands further back; `unchanged` holds these texts by call, once they are found."""
    key = orjson.dumps([call.name, call.arguments], option=orjson.OPT_SORT_KEYS)
    if answer.is_repeated:
        unchanged.setdefault(key, "")
        return _UNCHANGED
    if key not in unchanged:
        return outcome
    unchanged[key] = unchanged[key] or outcome
    return _UNCHANGED if unchanged[key] == outcome else outcome


def _has_failed(turn: Turn) -> bool:
    return turn.role == "tool" and turn.failed


def _recent_turns(transcript: Transcript) -> Iterator[Turn]:
    """Yield the turns of the newest steps, newest first, back to the last retry."""
    replies = 0
    for turn in reversed(transcript.turns):
        if turn.note == AGAIN:
            return
        yield turn
        replies += turn.role == "assistant"
        if replies == MAX_STEPS:
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
