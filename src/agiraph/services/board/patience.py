"""Patience: how long work waits for a person's answer before it goes on without."""

from datetime import datetime, timedelta

from agiraph.domain.agents import Team
from agiraph.domain.messages import NEEDS_ANSWER, Message
from agiraph.domain.waits import WaitingOn
from agiraph.store import waits
from agiraph.store.tx import Tx

A_DAY = timedelta(days=1)
"""How long a question waits that has a default, or whose team works in cycles."""
AN_HOUR = timedelta(hours=1)
"""How long work waits for a decision on a call without saying that nothing else can be done."""


def of_team(team: Team) -> timedelta | None:
    """Return the longest wait that a person has set for the team; None: they have set none."""
    return None if team.answer_within_s is None else timedelta(seconds=team.answer_within_s)


def for_question(
    team: Team, *, own: timedelta | None = None, has_default: bool = False
) -> timedelta | None:
    """Return how long a question waits: the shorter of the asker's and the team's limits; None:
    for ever.

    Without a limit a question waits for a day if it has a default, or if its team works in cycles:
    nobody may be there, and the next cycle begins only when this one has ended.
    """
    limits = [limit for limit in (own, of_team(team)) if limit is not None]
    if limits:
        return min(limits)
    return A_DAY if has_default or team.mode == "infinite" else None


def for_request(team: Team, *, is_urgent: bool) -> timedelta | None:
    """Return how long a call waits for a decision; None: for ever. It `is_urgent` if the agent said
    that nothing can be done without it."""
    set_ = of_team(team)
    if is_urgent:
        return set_
    return AN_HOUR if set_ is None else min(set_, AN_HOUR)


def waits_until(tx: Tx, asked: Message) -> datetime | None:
    """Return until when work waits for a person's answer to a question or request, and goes on
    without it then; None: it waits as long as it takes, does not wait, or has the answer."""
    if asked.kind not in NEEDS_ANSWER or asked.answered_at is not None:
        return None
    kind = "answer" if asked.kind == "question" else "approval"
    return waits.until(tx, WaitingOn(kind, asked.id))


def ends_at(team: Team, asked: Message) -> datetime | None:
    """Return when work stops waiting for the answer to a question or request; None: never."""
    is_question = asked.kind == "question"
    limit = for_question(team) if is_question else for_request(team, is_urgent=False)
    return None if limit is None else asked.created_at + limit
