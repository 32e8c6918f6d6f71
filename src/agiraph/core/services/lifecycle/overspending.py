"""Overspending: stop paid model calls when the day's money is spent, and ask about goals that spend
far too fast.

A day begins at 00:00 UTC. A node of any team that would make a call beyond the limit waits for the
next day, and one request in the inbox asks a person to allow more. The row of the day holds what
was allowed, so it survives a kill.

A goal is asked about once, when it has spent a fifth of its budget within ten minutes, and five
dollars at least; from half of it on, its work waits for the answer. Without a budget of its own the
home's daily limit counts. Models without a price are measured by the goal's token limit: two fifths
of it ask, and two million tokens at least; they let nothing wait. The request is a row, so it is
made once, whatever crashes; what was spent lately is known in each process for itself.
"""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.costs import CostHistory, CostsBy, DayCosts
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.domain.messages import Decision, Message
from agiraph.core.domain.outcomes import Parked
from agiraph.core.domain.work import Timer, WaitingOn, WorkNode
from agiraph.core.services.board import planning, requests, waiting
from agiraph.core.services.lifecycle import claims, endings
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, nodes, spend, threads, waits
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.spend import DAILY_LIMITS, DailyLimit
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

SPENDERS = 3
"""How many agents the request names as those that spent most."""
MOST_USD = 1_000_000.0
"""The most that one approval may allow."""
DAY_REASON = (
    "today's limit of {most:,.2f} USD for model calls is reached; it goes on when you allow more "
    "(see the inbox), or at 00:00 UTC"
)
DAY_REQUEST = (
    "Today's limit for model calls is reached: {spent:,.2f} USD of {most:,.2f} USD are spent"
    "{reserved}.{spenders} All work that needs a paid model waits, in every team.\n\n"
    "Approve to allow another {offered:,.2f} USD today, or write another amount as the note. If "
    "you deny, the work waits and goes on by itself at 00:00 UTC."
)
NO_AMOUNT = "{text!r} is no amount: approve with a number of dollars above zero alone, such as 20."
NEW_DAY = "A new day has begun, so the work goes on."
RAISED = "The limit was raised in the settings, so the work goes on."
_AMOUNT = re.compile(r"(?:USD|\$)?\s*+(\d++(?:[.,]\d++)*+)\s*+(?:USD|\$)?", re.IGNORECASE)
"""An amount alone. Words without a number are a note."""
LEAST_OF_DAY = timedelta(hours=1)
"""How much of a day must be over before its pace says anything."""
WINDOW = timedelta(minutes=10)
ASK_SHARE, WAIT_SHARE, LEAST_USD = 0.2, 0.5, 5.0
TOKEN_SHARE, LEAST_TOKENS = 0.4, 2_000_000
GOAL_REQUEST = (
    "This goal spends fast: {spent} within the last 10 minutes, of {whole}.{waits}\n\n"
    "Approve to let it go on; you are not asked again. Deny to stop the goal."
)
WAITS = " Its work waits for your answer."
GOES_ON = " It goes on meanwhile."
GOAL_REASON = "the goal spends very fast; it goes on when you allow it (see the inbox)"


def costs_of_day(tx: Tx, limit_usd: float | None) -> DayCosts:
    """Return what was spent today, and what may be spent."""
    day = spend.day_of(tx.now)
    row = DAILY_LIMITS.find(tx, day) or DailyLimit(day=day)
    spent = spend.usd_of_day(tx, day)
    most = None if limit_usd is None else limit_usd + row.allowed_usd
    return DayCosts(
        day=day,
        usd=spend.round_usd(spent),
        limit_usd=most,
        allowed_usd=row.allowed_usd,
        is_reached=limit_usd is not None and row.is_reached(limit_usd, spent),
        forecast_usd=_forecast(spent, tx.now),
    )


def history(
    tx: Tx, by: CostsBy, limit_usd: float | None, *, days: int, team_id: TeamId | None = None
) -> CostHistory:
    """Return what was spent on each of the last days, today included: of one team or of all."""
    first = spend.day_of(tx.now - timedelta(days=days - 1))
    parts = spend.by_day(tx, by, first, team_id)
    today = costs_of_day(tx, limit_usd)
    return CostHistory(by=by, first_day=first, today=today, parts=parts)


def _forecast(spent: float, now: datetime) -> float | None:
    """Return what the whole day costs if it goes on as until now."""
    gone = now - now.replace(hour=0, minute=0, second=0, microsecond=0)
    is_known = spent > 0 and gone >= LEAST_OF_DAY
    return spend.round_usd(spent * (timedelta(days=1) / gone)) if is_known else None


def park_for_day(tx: Tx, lease: Lease, *, limit_usd: float) -> None:
    """Park a node until a person allows more or the day ends, and ask the person once.

    If there is money again meanwhile, the node goes back into its queue.
    """
    threads.check_lease(tx, lease)
    row = _lock_and_ask(tx, lease, limit_usd)
    if row is None:
        return claims.release(tx, lease)
    ending, reason = (
        WaitingOn("day", row.day),
        DAY_REASON.format(most=limit_usd + row.allowed_usd),
    )
    asked = None if row.question_id is None else MESSAGES.get(tx, row.question_id)
    for_whom = [] if asked is None or asked.answered_at else [WaitingOn("approval", asked.id)]
    for on in (*for_whom, ending):
        waits.open(tx, lease, call_id="", waiting_on=on, reason=reason)
    # Timer and wait commit together: a node that sleeps without a timer would never wake.
    waits.set_timer(tx, Timer("day", row.day), _midnight_after(row.day))
    return claims.park(tx, lease, Parked((*for_whom, ending), reason))


def ask_about_day(tx: Tx, lease: Lease, *, limit_usd: float) -> None:
    """Ask the person to allow more, if nobody has asked them yet; parks nothing."""
    threads.check_lease(tx, lease)
    row = _lock_and_ask(tx, lease, limit_usd)
    if row is not None:
        # The end of the day closes the request, also if no node waits.
        waits.set_timer(tx, Timer("day", row.day), _midnight_after(row.day))


def _lock_and_ask(tx: Tx, lease: Lease, limit_usd: float) -> DailyLimit | None:
    """Lock the day's row and ask if nobody has; None if the limit is not reached after all.

    The lock makes two processes that reach the limit together send one request.
    """
    row = spend.lock(tx, spend.day_of(tx.now))
    spent = spend.usd_of_day(tx, row.day)
    reserved = spend.reserved_usd(tx, apart_from=lease.thread_id)
    most = limit_usd + row.allowed_usd
    if not row.is_reached(limit_usd, spent + reserved):
        return None
    if row.has_stopped_at(most):
        return row  # asked before, whatever the answer was
    pending = f", and {reserved:,.2f} USD are reserved for calls under way" if reserved else ""
    offered = limit_usd or 1.0
    text = DAY_REQUEST.format(
        spent=spent, most=most, reserved=pending, spenders=_spenders(tx, row.day), offered=offered
    )
    # Without a node: the request is about all teams, and stays open if this node is cancelled.
    draft = replace(bus.to_person(tx, NODES.get(tx, lease.node_id), text), node_id=None)
    asked = bus.send(tx, replace(draft, kind="approval"), refusable=False)
    changes = {"stopped_usd": most, "offered_usd": offered, "question_id": asked.id}
    DAILY_LIMITS.update(tx, row.day, **changes)
    return DAILY_LIMITS.get(tx, row.day)


def _spenders(tx: Tx, day: str) -> str:
    """Return a sentence with the agents that have spent most."""
    by_agent: Counter[tuple[str, str]] = Counter()
    for line in spend.of_day(tx, day):
        by_agent[line.team_id, line.agent_id] += line.usd  # pyright: ignore[reportArgumentType]
    named = [
        f"{planning.name_of(tx, agent)} of {TEAMS.get(tx, team).name!r} {usd:,.2f} USD"
        for (team, agent), usd in by_agent.most_common(SPENDERS)
        if usd
    ]
    return f" Most of it by {', '.join(named)}." if named else ""


def decide_on_day(
    tx: Tx, day: str, text: str, *, person_id: PersonId, decision: Decision | None
) -> None:
    """Record a person's decision. An approval lets all work go on at once."""
    # The day's row before the agent's and the question's: `park_for_day` takes them in this order.
    row = spend.lock(tx, day)
    assert row.question_id is not None
    amount = None if decision == "deny" else _amount(text)
    if decision is None and amount is None:
        raise Refused("Answer with approve or deny; an amount after approve allows that much.")
    decision = decision or "approve"
    bus.record_answer(tx, row.question_id, text, person_id=person_id, decision=decision)
    if decision == "approve":
        allowed = row.allowed_usd + (row.offered_usd if amount is None else amount)
        DAILY_LIMITS.update(tx, day, allowed_usd=allowed)
        waiting.resume(tx, WaitingOn("day", day))
    else:
        # The nodes still wait for the end of the day.
        waits.take(tx, WaitingOn("approval", row.question_id))


def _amount(text: str) -> float | None:
    """Return the dollars that an answer consists of; None if it is not an amount alone."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        if any(character.isdigit() for character in text):
            raise Refused(NO_AMOUNT.format(text=text[:100]))
        return None
    try:
        # A comma before three digits groups thousands, any other one is a decimal point.
        amount = float(re.sub(r",(?=\d{3}(?!\d))", "", found[1]).replace(",", "."))
    except ValueError:
        amount = 0.0
    if not 0 < amount <= MOST_USD:
        raise Refused(NO_AMOUNT.format(text=text[:100]))
    return amount


def end_day(tx: Tx, day: str) -> None:
    """Let all work go on that waited for the end of this day, and close its request."""
    _free(tx, spend.lock(tx, day), NEW_DAY)


def free_if_raised(tx: Tx, limit_usd: float | None) -> None:
    """Let all work go on if the limit in the settings is higher now than when work stopped."""
    row = DAILY_LIMITS.find(tx, spend.day_of(tx.now), lock=True)
    if row is None or row.stopped_usd is None:
        return
    if limit_usd is None or limit_usd + row.allowed_usd > row.stopped_usd:
        _free(tx, row, RAISED)


def withdraw_requests(tx: Tx, team_id: TeamId) -> None:
    """Withdraw the open requests about all teams that lie in this team's inbox, because the team is
    deleted. The work of the other teams goes on, and asks anew if the cause is still there."""
    for asked in messages.about_providers(tx, team_id):
        waiting.resume(tx, WaitingOn("answer", asked.id))
    for row in spend.open_in(tx, team_id):
        DAILY_LIMITS.update(tx, row.day, question_id=None, stopped_usd=None)
        waiting.resume(tx, WaitingOn("day", row.day))


def _free(tx: Tx, row: DailyLimit, why: str) -> None:
    if row.question_id is not None:
        requests.end(tx, row.question_id, why)
    waiting.resume(tx, WaitingOn("day", row.day))


def _midnight_after(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)


def check_goal(tx: Tx, lease: Lease, *, usd: float, tokens: int, limit_usd: float | None) -> bool:
    """Ask about the goal of a run if it has spent this much lately; return whether the run must
    wait for the answer.

    `tokens` are those of calls without a price, `limit_usd` what may be spent in a day.
    """
    threads.check_lease(tx, lease)
    if (goal := _goal(tx, lease)) is None:
        return False
    whole_usd = goal.budget.usd if goal.budget.usd is not None else limit_usd
    is_fast, must_wait = False, False
    spent, whole = f"${usd:,.2f}", f"${whole_usd or 0:,.2f}"
    if whole_usd is not None and usd >= LEAST_USD:
        is_fast, must_wait = usd >= ASK_SHARE * whole_usd, usd >= WAIT_SHARE * whole_usd
    if not is_fast and (limit := goal.budget.tokens) is not None:
        is_fast = tokens >= max(LEAST_TOKENS, TOKEN_SHARE * limit)
        spent, whole = f"{tokens:,} tokens", f"{limit:,}"
    if not is_fast:
        return False
    text = GOAL_REQUEST.format(spent=spent, whole=whole, waits=WAITS if must_wait else GOES_ON)
    return _ask_about_goal(tx, lease, goal, text).answered_at is None and must_wait


def _goal(tx: Tx, lease: Lease) -> WorkNode | None:
    """Return the goal that a run's work belongs to; None if it is over, or if there is none."""
    root = nodes.root(tx, NODES.get(tx, lease.node_id))
    goal = root if root.is_goal else nodes.last_goal(tx, lease.team_id)
    return None if goal is None or goal.status.is_final else goal


def _ask_about_goal(tx: Tx, lease: Lease, goal: WorkNode, text: str) -> Message:
    """Return the request about a goal, sending it if nobody has."""
    # The lock makes two runs that find it together send one request.
    TEAMS.get(tx, lease.team_id, lock=True)
    if asked := messages.about(tx, "spending", goal.id):
        return asked[0]
    draft = bus.to_person(tx, goal, text)
    draft = replace(draft, kind="approval", options=bus.DECISIONS, topic="spending", ref=goal.id)
    asker = goal.assignee_id or lease.agent_id
    return bus.send(tx, replace(draft, sender=asker), refusable=False)


def park_for_goal(tx: Tx, lease: Lease) -> None:
    """Park a node until a person has answered the request about its goal. If they have, the node
    goes back into its queue."""
    threads.check_lease(tx, lease)
    goal = _goal(tx, lease)
    [asked] = ([] if goal is None else messages.about(tx, "spending", goal.id))[:1] or [None]
    if asked is not None:
        asked = requests.lock(tx, asked.id)
    if asked is None or asked.answered_at is not None:
        return claims.release(tx, lease)
    on = WaitingOn("approval", asked.id)
    waits.open(tx, lease, call_id="", waiting_on=on, reason=GOAL_REASON)
    return claims.park(tx, lease, Parked((on,), GOAL_REASON))


def decide_on_goal(
    tx: Tx, question: Message, decision: Decision | None, *, person_id: PersonId
) -> None:
    """Let the goal's work go on, or stop the goal if the person says no."""
    assert question.node_id is not None
    if decision == "deny":
        endings.cancel(tx, question.node_id, by=person_id)
    waiting.resume(tx, WaitingOn("approval", question.id))
