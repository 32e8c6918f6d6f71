"""Planted: old faults of the runtime, planted on purpose. The mutated stories must catch each."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from agiraph.core.domain.chat import Transcript
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.tools import WorkDecision
from agiraph.core.domain.work import StopReason, WorkNode
from agiraph.core.policies.breaker import Silence
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import Steps
from agiraph.core.services.board import waiting
from agiraph.core.services.lifecycle import conversation, endings
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.core.tools import objections, work


def second_words_complete(patch: pytest.MonkeyPatch) -> None:
    """The second reply in words in a row is the result, whatever it says."""
    verdict = Silence.verdict

    def complete(self: Silence, transcript: Transcript) -> Finished | Failed | None:
        row = self._row(transcript)
        if len(row) > 1 and row[0].text.strip():
            return Finished(row[0].text, StopReason.ANSWERED)
        return verdict(self, transcript)

    patch.setattr(Silence, "verdict", complete)


def summary_counts_as_silence(patch: pytest.MonkeyPatch) -> None:
    """The summary of a shortened thread is a reply in words: one more is the result."""
    verdict = Silence.verdict

    def complete(self: Silence, transcript: Transcript) -> Finished | Failed | None:
        row = self._row(transcript)
        replies = [turn for turn in transcript.turns if turn.role == "assistant"]
        is_first = transcript.cuts > 0 and len(row) == 1 and not replies[-2].calls
        if is_first and self.tools and row[0].text.strip():
            return Finished(row[0].text, StopReason.ANSWERED)
        return verdict(self, transcript)

    patch.setattr(Silence, "verdict", complete)


def ending_counts_beside_others(patch: pytest.MonkeyPatch) -> None:
    """An ending call beside other calls ends the node."""
    patch.setattr(Steps, "_ends_beside_others", lambda *_: False)


def any_finish_completes_the_team(patch: pytest.MonkeyPatch) -> None:
    """Work beside the goal ends as if it were the goal."""
    patch.setattr(WorkNode, "is_goal", property(lambda self: self.parent_id is None))


def open_children_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """An ending call looks neither at children nor at lines, and open children are cancelled."""

    async def waits_for_nothing(ctx: RunContext) -> None:
        return None

    # Else what else is missing sends the early end back, whatever is open below it.
    async def no_doubts(*_: Any, **_named: Any) -> tuple[()]:
        return ()

    patch.setattr(work, "_wait_for_tasks", waits_for_nothing)
    patch.setattr(objections, "doubts", no_doubts)
    patch.setattr(endings, "_children_run_on", lambda _: False)


def message_beside_a_question_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A message to an agent that waits for a person is marked as seen and shown to nobody."""
    interrupt = waiting.interrupt

    def drop(tx: Tx, agent_id: AgentId, said: Sequence[Message], **more: Any) -> bool:
        if not waiting.asks_person(tx, agent_id):
            return interrupt(tx, agent_id, said, **more)
        messages.mark_seen(tx, [message.id for message in said])
        return False

    patch.setattr(waiting, "interrupt", drop)


def acts_are_not_stated(patch: pytest.MonkeyPatch) -> None:
    """What a reply's calls did does not stand under it."""
    decide = conversation._decide

    def forget(*given: Any) -> tuple[frozenset[WorkDecision], list[Act]]:
        return decide(*given)[0], []

    patch.setattr(conversation, "_decide", forget)


class Planted(NamedTuple):
    arm: Callable[[pytest.MonkeyPatch], None]
    where: str
    """The story in which the fault must be caught."""
    lapse: str = ""
    """The only lapse that is played, for a fault that few places of a story show; empty: any."""
    is_after_words: bool = False
    """Whether the replies that follow one in words are tried first."""


ALL: dict[str, Planted] = {
    "second_words_complete": Planted(second_words_complete, "seed 5"),
    "summary_counts_as_silence": Planted(
        summary_counts_as_silence, "seed 7", "announces", is_after_words=True
    ),
    "ending_counts_beside_others": Planted(
        ending_counts_beside_others, "grown stage", "finishes beside its calls"
    ),
    "any_finish_completes_the_team": Planted(any_finish_completes_the_team, "alarm"),
    "open_children_are_ignored": Planted(
        open_children_are_ignored, "grown stage", "finishes too early"
    ),
    "message_beside_a_question_is_dropped": Planted(
        message_beside_a_question_is_dropped, "message beside a question"
    ),
    "acts_are_not_stated": Planted(acts_are_not_stated, "conversation", "starts needless work"),
}
