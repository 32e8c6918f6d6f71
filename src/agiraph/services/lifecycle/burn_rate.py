"""Burn rate: asks a person once about a goal that spends far faster than its budget lets expect.

A goal is asked about when it has spent a fifth of its budget within ten minutes, and five dollars
at least; from half of it on, its work waits for the answer. Without a budget of its own the home's
daily limit counts. Models without a price are measured by the goal's token limit: two fifths of it
ask, and two million tokens at least; they let nothing wait. The request is a row, so it is made
once, whatever crashes; what was spent lately is known in each process for itself.
"""

from datetime import timedelta

from agiraph.domain.chat import Lease
from agiraph.domain.ids import AgentId
from agiraph.domain.messages import Decision, Message
from agiraph.domain.outcomes import Parked
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import WorkNode
from agiraph.services.board import planning, waiting
from agiraph.services.lifecycle import claims, endings
from agiraph.services.mail import bus
from agiraph.store import messages, nodes, teams, threads, waits
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

WINDOW = timedelta(minutes=10)
ASK_SHARE, WAIT_SHARE, LEAST_USD = 0.2, 0.5, 5.0
TOKEN_SHARE, LEAST_TOKENS = 0.4, 2_000_000
REF = "burn:"
"""Prefix of the ref of the request; the goal's id follows."""
REQUEST = (
    "This goal spends fast: {spent} within the last 10 minutes, of {whole}.{waits}\n\n"
    "Approve to let it go on; you are not asked again. Deny to stop the goal."
)
WAITS = " Its work waits for your answer."
GOES_ON = " It goes on meanwhile."
REASON = "the goal spends very fast; it goes on when you allow it (see the inbox)"


def check(tx: Tx, lease: Lease, *, usd: float, tokens: int, limit_usd: float | None) -> bool:
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
    text = REQUEST.format(spent=spent, whole=whole, waits=WAITS if must_wait else GOES_ON)
    return _ask_once(tx, lease, goal, text).answered_at is None and must_wait


def _goal(tx: Tx, lease: Lease) -> WorkNode | None:
    """Return the goal that a run's work belongs to; None if it is over, or if there is none."""
    root = nodes.root(tx, NODES.get(tx, lease.node_id))
    goal = root if root.is_goal else nodes.last_goal(tx, lease.team_id)
    return None if goal is None or goal.status.is_final else goal


def _ask_once(tx: Tx, lease: Lease, goal: WorkNode, text: str) -> Message:
    """Return the request about a goal, sending it if nobody has."""
    # The lock makes two runs that find it together send one request.
    TEAMS.get(tx, lease.team_id, lock=True)
    if (asked := messages.approval(tx, f"{REF}{goal.id}")) is not None:
        return asked
    return bus.send(
        tx,
        team_id=lease.team_id,
        sender=goal.assignee_id or lease.agent_id,
        recipient=planning.person_for(tx, goal),
        kind="approval",
        options=("approve", "deny"),
        text=text,
        node_id=goal.id,
        ref=f"{REF}{goal.id}",
        refusable=False,
    )


def park(tx: Tx, lease: Lease) -> None:
    """Park a node until a person has answered the request about its goal. If they have, the node
    goes back into its queue."""
    threads.check_lease(tx, lease)
    goal = _goal(tx, lease)
    asked = None if goal is None else messages.approval(tx, f"{REF}{goal.id}")
    if asked is not None:
        # The agent's row before the request's, as `bus.record_answer` locks them.
        teams.lock(tx, AgentId(asked.sender))
        asked = MESSAGES.get(tx, asked.id, lock=True)
    if asked is None or asked.answered_at is not None:
        return claims.release(tx, lease)
    on = WaitingOn("approval", asked.id)
    waits.open(tx, lease, call_id="", waiting_on=on, reason=REASON)
    return claims.park(tx, lease, Parked((on,), REASON))


def is_about(question: Message) -> bool:
    """Whether a request asks about a goal's burn rate."""
    return question.ref is not None and question.ref.startswith(REF)


def decide(tx: Tx, question: Message, decision: Decision | None) -> None:
    """Let the goal's work go on, or stop the goal if the person says no."""
    assert question.node_id is not None
    if decision == "deny":
        endings.cancel(tx, question.node_id)
    waiting.resume(tx, WaitingOn("approval", question.id))
