"""Briefings: what a coordinator tells the person unasked, and how much it must be worth."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agiraph.domain.agents import Team
from agiraph.domain.chat import Lease
from agiraph.domain.errors import Refused
from agiraph.domain.events.mail import BriefingDecided, BriefingRated
from agiraph.domain.ids import HUMAN, MessageId, NodeId
from agiraph.domain.messages import Message, Rating
from agiraph.domain.outcomes import Finished
from agiraph.domain.work import NodeStatus, StopReason
from agiraph.services.board import notices
from agiraph.services.lifecycle import endings
from agiraph.services.mail import bus
from agiraph.store import messages, threads
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

SAME = 0.8
"""How alike two briefings are, from 0 to 1, before the second one says nothing new."""
COMPARED = 20
"""Earlier briefings that a new one is compared with."""
STEP, LOWEST, HIGHEST = 0.05, 0.2, 0.95
"""How far one thumb moves a team's threshold, and how far all of them may."""
TITLE, TEXT = 200, 20_000
_SHINGLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the agent thinks its news is worth, and how it would tell it."""

    score: float
    title: str = ""
    text: str = ""


class News(NamedTuple):
    """Work that nobody was told of yet, and what they were told before."""

    work: NodeId
    told: list[Message]


def news(tx: Tx, node_id: NodeId) -> News | None:
    """What a reflection may brief about; nothing, if all of it was asked for and delivered."""
    looked_at = [t.node_id for t in threads.of_reflection(tx, node_id) if t.node_id is not None]
    fresh = [
        work
        for work in looked_at
        if NODES.get(tx, work).status is not NodeStatus.CANCELLED
        and not any(m.recipient == HUMAN for m in messages.endings_of(tx, work))
    ]
    if not fresh:
        return None
    return News(fresh[-1], messages.briefings(tx, NODES.get(tx, node_id).team_id, limit=COMPARED))


def pass_over(tx: Tx, lease: Lease, *, reason: str) -> None:
    """End a reflection without a briefing."""
    threads.check_lease(tx, lease)
    _end(tx, lease, reason=reason)


def decide(tx: Tx, lease: Lease, verdict: Verdict) -> Message | None:
    """End a reflection with a briefing, if it is worth it and says something new; else silently."""
    threads.check_lease(tx, lease)
    threshold = TEAMS.get(tx, lease.team_id, lock=True).briefing_threshold
    known = news(tx, lease.node_id)
    title, text = notices.cut(verdict.title.strip(), TITLE), _shortened(verdict.text, lease)
    scored = {"score": verdict.score, "threshold": threshold}
    if known is None:
        return _end(tx, lease, reason="already delivered", scored=scored)
    if verdict.score < threshold:
        return _end(tx, lease, reason="not worth it", scored=scored)
    if not text:
        return _end(tx, lease, reason="nothing said", scored=scored)
    if told := _told_before(title, text, known.told):
        return _end(tx, lease, reason=f"told before: {told.id}", scored=scored)
    message = bus.send(
        tx,
        team_id=lease.team_id,
        sender=lease.agent_id,
        recipient=HUMAN,
        kind="briefing",
        title=title or notices.first_line(text),
        text=text,
        node_id=known.work,
        refusable=False,
    )
    return _end(tx, lease, reason="worth it", message=message, scored=scored)


def _shortened(text: str, lease: Lease) -> str:
    text = text.strip()
    if len(text) <= TEXT:
        return text
    return f"{text[:TEXT]}\n… ({len(text) - TEXT:,} characters more, in thread {lease.thread_id})"


def _end(
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
    endings.conclude(tx, lease, Finished(said, StopReason.FINISHED))
    return message


def _told_before(title: str, text: str, told: Sequence[Message]) -> Message | None:
    said = _shingles(f"{title} {text}")
    for message in told:
        before = _shingles(f"{message.title} {message.text}")
        if len(said & before) >= SAME * len(said | before):
            return message
    return None


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Every few words in a row of a text."""
    words = re.findall(r"\w+", text.lower())
    last = max(len(words) - _SHINGLE, 0)
    return frozenset(tuple(words[i : i + _SHINGLE]) for i in range(last + 1))


def rate(tx: Tx, message_id: MessageId, *, up: bool) -> Team:
    """A thumb on a briefing. Up lets more of its kind through, down fewer; the last one counts."""
    message = MESSAGES.get(tx, message_id, lock=True)
    if message.kind != "briefing" or message.recipient != HUMAN:
        raise Refused(f"{message_id} is a {message.kind}; only briefings are rated.")
    team = TEAMS.get(tx, message.team_id, lock=True)
    rating: Rating = "up" if up else "down"
    if message.rating == rating:
        return team
    step = STEP if message.rating is None else 2 * STEP  # the first word is taken back
    moved = team.briefing_threshold + (-step if up else step)
    threshold = round(min(max(moved, LOWEST), HIGHEST), 2)
    MESSAGES.update(tx, message_id, rating=rating, seen_at=message.seen_at or tx.now)
    TEAMS.update(tx, team.id, briefing_threshold=threshold)
    tx.emit(team.id, BriefingRated(message_id=message_id, rating=rating, threshold=threshold))
    return TEAMS.get(tx, team.id)
