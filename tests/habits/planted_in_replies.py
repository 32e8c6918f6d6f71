"""Planted in replies: faults of the runtime, planted on purpose. Rude replies must catch each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.tools import WorkDecision
from agiraph.core.runtime.replies import reply
from agiraph.core.services.lifecycle import conversation, endings, routing
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.features.research import tools as research
from tests.habits.acts import State

Patch = pytest.MonkeyPatch


def chat_reaches_nobody(patch: Patch) -> None:
    """What a reply takes for small talk is marked as heard, although work is under way."""
    hand_on = conversation._hand_on

    def drop(
        tx: Tx,
        agent: Any,
        reply_id: NodeId,
        decided: frozenset[WorkDecision],
        acts: list[Act],
        unheard: Sequence[str],
    ) -> list[Act]:
        if decided == {"chat"}:
            routing.mark_heard(tx, messages.to_answer(tx, reply_id))
        return hand_on(tx, agent, reply_id, decided, acts, unheard)

    patch.setattr(conversation, "_hand_on", drop)


def silence_is_chat(patch: Patch) -> None:
    """A message about which nothing was decided is taken for small talk."""
    decided = reply._decided
    patch.setattr(reply, "_decided", lambda transcript: decided(transcript) or frozenset({"chat"}))


def own_words_are_all(patch: Patch) -> None:
    """Work is shown only how the reply has put what the person said."""
    patch.setattr(conversation, "unsaid", lambda *_: [])


def second_message_is_left(patch: Patch) -> None:
    """Of two messages that one reply answers, the one that no call names is dropped."""
    patch.setattr(routing, "left_over", lambda *_: "")


def research_forgets(patch: Patch) -> None:
    """Research is shown only how the reply has put what the person said."""
    patch.setattr(research, "_with_their_words", lambda tx, ctx, goal, label: (goal, label))


def stop_drops_unsaid(patch: Patch) -> None:
    """A stop drops what the work has not read, and names none of it."""
    drop = routing._drop_unread

    def silently(*given: Any) -> list[Message]:
        drop(*given)
        return []

    patch.setattr(routing, "_drop_unread", silently)


def telling_is_unsaid(patch: Patch) -> None:
    """No line says that a teammate was told something."""
    tell = routing.tell

    def silently(*given: Any) -> Done:
        return replace(tell(*given), did=None)

    patch.setattr(routing, "tell", silently)


def stop_is_only_said(patch: Patch) -> None:
    """A reply says that work was stopped, and it goes on."""

    patch.setattr(endings, "stop", lambda tx, node_id, *, by, is_said=False: False)


def refused_calls_count(patch: Patch) -> None:
    """What a refused call was about counts as decided."""
    patch.setattr(reply, "_failed_calls", lambda transcript: set[str]())


def oldest_is_answered(patch: Patch) -> None:
    """A bare answer goes to the first question of the conversation."""
    question = routing._question

    def oldest(tx: Tx, agent: Any, person_id: Any, question_id: str) -> Message:
        known = messages.open_questions(tx, agent.team_id)
        mine = [q for q in known if q.sender == agent.id and q.kind == "question"]
        return question(tx, agent, person_id, question_id or (mine[0].id if mine else ""))

    patch.setattr(routing, "_question", oldest)


def one_answer_for_two(patch: Patch) -> None:
    """The same words may answer several questions."""

    def let(tx: Tx, said: str, acts: Sequence[Act]) -> None:
        return None

    patch.setattr(routing, "_refuse_used_words", let)


def others_are_answered(patch: Patch) -> None:
    """A bare answer goes to the newest question of the team, whoever asked it."""
    question = routing._question

    def newest(tx: Tx, agent: Any, person_id: Any, question_id: str) -> Message:
        known = [q for q in messages.open_questions(tx, agent.team_id) if q.kind == "question"]
        return question(tx, agent, person_id, question_id or (known[-1].id if known else ""))

    patch.setattr(routing, "_question", newest)


class Planted(NamedTuple):
    arm: Callable[[Patch], None]
    where: State
    """The state in which the fault must be caught."""
    caught_as: str
    """What the violation says."""
    act: str = ""
    """What the name of the acts contains that are tried."""


ALL: dict[str, Planted] = {
    "chat_reaches_nobody": Planted(chat_reaches_nobody, State.RUNS, "never heard"),
    "silence_is_chat": Planted(silence_is_chat, State.IDLE, "nobody has", "no call"),
    "own_words_are_all": Planted(own_words_are_all, State.ENDED, "nobody has", "start_work(task"),
    "second_message_is_left": Planted(
        second_message_is_left, State.BOB_ASKS, "nobody has", "answer(question_id=<a teammate's"
    ),
    "research_forgets": Planted(research_forgets, State.IDLE, "nobody has", "research_start(goal"),
    "stop_drops_unsaid": Planted(stop_drops_unsaid, State.UNREAD, "nobody has", "stop"),
    "telling_is_unsaid": Planted(telling_is_unsaid, State.BOB_RUNS, "no reply says", "tell"),
    "stop_is_only_said": Planted(stop_is_only_said, State.ASKS, "not so", "stop"),
    "refused_calls_count": Planted(refused_calls_count, State.IDLE, "nobody has", "stop"),
    "oldest_is_answered": Planted(
        oldest_is_answered, State.ASKS_TWICE, "which nobody named", "answer()"
    ),
    "one_answer_for_two": Planted(
        one_answer_for_two, State.ASKS_TWICE, "have answered 2 questions", "answer"
    ),
    "others_are_answered": Planted(
        others_are_answered, State.TWO_ASK, "which nobody named", "answer()"
    ),
}
