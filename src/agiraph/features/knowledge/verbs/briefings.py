"""Briefings: news that a coordinator sends the team's owner unasked, if it is worth enough."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.events.mail import BriefingDecided
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.outcomes import Finished
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text import spoken
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows

SAME = 0.8
"""Similarity (0 to 1) from which a briefing counts as a repetition of an earlier one."""
COMPARED = 20
"""How many earlier briefings a new one is compared with."""
TITLE, SUMMARY, TEXT = 200, 600, 20_000
"""Characters of a briefing's title, of its summary and of its text."""
_SHINGLE = 3
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The agent's own score of its news (0 to 1), and the briefing it would send."""

    score: float
    title: str = ""
    summary: str = ""
    """The short text for the inbox; empty: the beginning of the text."""
    text: str = ""


class News(NamedTuple):
    """A node whose result the person has not been sent, and the briefings sent before."""

    work: NodeId
    earlier: list[Message]


def news(tx: Tx, node_id: NodeId) -> News | None:
    """Return what a reflection may brief about; None if all results were already delivered."""
    reviewed = rows.of_reflection(tx, node_id)
    # Others' work that the coordinator looks back on was reported to its creator.
    own = [t for t in reviewed if t.agent_id == NODES.get(tx, node_id).assignee_id]
    looked_at = [t.node_id for t in own if t.node_id is not None]
    fresh = [
        work
        for work in looked_at
        if NODES.get(tx, work).status is not NodeStatus.CANCELLED
        and not any(is_person(m.recipient) for m in messages.endings_of(tx, work))
    ]
    if not fresh:
        return None
    return News(fresh[-1], messages.briefings(tx, NODES.get(tx, node_id).team_id, limit=COMPARED))


def skip(tx: Tx, lease: Lease, *, reason: str) -> None:
    """End a reflection without a briefing."""
    threads.check_lease(tx, lease)
    _end_reflection(tx, lease, reason=reason)


def decide(tx: Tx, lease: Lease, verdict: Verdict) -> Message | None:
    """End a reflection, with a briefing if it reaches the threshold and says something new.

    The team's row lock makes two reflections wait for each other, so that they do not both send it.
    """
    threads.check_lease(tx, lease)
    team = TEAMS.get(tx, lease.team_id, lock=True)
    threshold = team.briefing_threshold
    known = news(tx, lease.node_id)
    title, text = texts.truncate(verdict.title.strip(), TITLE), _shortened(verdict.text, lease)
    scored = {"score": verdict.score, "threshold": threshold}
    if known is None:
        return _end_reflection(tx, lease, reason="already delivered", scored=scored)
    if verdict.score < threshold:
        return _end_reflection(tx, lease, reason="not worth it", scored=scored)
    if not text:
        return _end_reflection(tx, lease, reason="nothing said", scored=scored)
    if similar := _find_similar(title, text, known.earlier):
        return _end_reflection(tx, lease, reason=f"told before: {similar.id}", scored=scored)
    message = bus.send(
        tx,
        Draft(
            team_id=lease.team_id,
            sender=lease.agent_id,
            recipient=team.owner_id,
            kind="briefing",
            title=title or texts.first_line(text),
            text=text,
            node_id=known.work,
        ),
        refusable=False,
    )
    MESSAGES.update(tx, message.id, summary=_summary(verdict, message.text))
    return _end_reflection(tx, lease, reason="worth it", message=message, scored=scored)


def _summary(verdict: Verdict, text: str) -> str:
    """Return the short text of a briefing, for the inbox."""
    return texts.truncate(spoken.for_person(verdict.summary).strip() or text, SUMMARY)


def _shortened(text: str, lease: Lease) -> str:
    text = text.strip()
    if len(text) <= TEXT:
        return text
    return f"{text[:TEXT]}\n… ({len(text) - TEXT:,} characters more, in thread {lease.thread_id})"


def _end_reflection(
    tx: Tx,
    lease: Lease,
    *,
    reason: str,
    scored: Mapping[str, float] | None = None,
    message: Message | None = None,
) -> Message | None:
    tx.emit(
        lease.team_id,
        BriefingDecided(
            node_id=lease.node_id,
            agent_id=lease.agent_id,
            sent=message is not None,
            message_id=None if message is None else message.id,
            reason=reason,
            score=None if scored is None else scored["score"],
            threshold=None if scored is None else scored["threshold"],
        ),
    )
    said = f"Briefed: {message.title}" if message is not None else f"Not briefed: {reason}"
    endings.end_node(tx, lease, Finished(said, StopReason.FINISHED))
    return message


def _find_similar(title: str, text: str, earlier: Sequence[Message]) -> Message | None:
    said = _shingles(f"{title} {text}")
    for message in earlier:
        before = _shingles(f"{message.title} {message.text}")
        if len(said & before) >= SAME * len(said | before):
            return message
    return None


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Return the set of all runs of three words in a text, to compare texts by. All numbers are the
    same word: news of a price is told once, and not with each of its changes."""
    words = re.findall(r"#|\w+", _NUMBER.sub("#", text.lower()))
    last = max(len(words) - _SHINGLE, 0)
    return frozenset(tuple(words[i : i + _SHINGLE]) for i in range(last + 1))
