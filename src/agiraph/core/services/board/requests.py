"""Requests: what a person is asked, and how long work waits for them.

A request for approval belongs to one call: it has the id of the call and a hash of its arguments
(`Message.ref`, `Message.fingerprint`), so that a decision holds for that one call. A request that
no call waits for has no id, because its agent went on or its call was interrupted: the next call of
the node with the same arguments takes it over. Questions and requests close with the work that
asked.
"""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

import orjson

from agiraph.core.domain.agents import Team
from agiraph.core.domain.chat import Lease, ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.mail import QuestionAnswered
from agiraph.core.domain.events.team import GrantMade, GrantUsed
from agiraph.core.domain.ids import AgentId, MessageId, NodeId
from agiraph.core.domain.messages import NEEDS_ANSWER, Message
from agiraph.core.domain.provenance.grants import (
    ASK_LASTS,
    KIND_OF_SINK,
    LIMITED_NETWORK,
    Grant,
    Offer,
)
from agiraph.core.domain.provenance.sinks import WayOut
from agiraph.core.domain.work import Timer, WaitingOn, WorkNode
from agiraph.core.store import grants, messages, teams, waits
from agiraph.core.store.grants import GRANTS
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

_FORMER = {"none": False, "open": True, None: False}
"""What earlier versions wrote for a command's network: their requests stay valid."""
A_DAY = timedelta(days=1)
"""How long a question waits that has a default, or whose team works in cycles."""
AN_HOUR = timedelta(hours=1)
"""How long work waits for a decision on a call without saying that nothing else can be done."""
CLOSED = "Closed: the work that asked has ended."
MOST_ASKS = 20
"""Requests that a node may send about ways out."""
MOST_DENIALS = 3
"""Refusals in a row after which a node may send no more requests."""
SUBMIT = "Do without such calls from now on, and submit what you have."
TOO_MANY = (
    f"Not made: this task has sent {MOST_ASKS} requests to the person, the most it may. {SUBMIT}"
)
DENIED = f"Not made: the person has refused {MOST_DENIALS} requests of this task in a row. {SUBMIT}"


def find_about(tx: Tx, node_id: NodeId, call: ToolCall) -> Message | None:
    """Return the request about this very call, decided or not.

    An interrupted request about the same arguments is bound to this call: one decision, one call.
    """
    asked = messages.request_for(tx, node_id, call_id=call.id, fingerprint=fingerprint(call))
    if asked is None or asked.ref is not None:
        return asked
    MESSAGES.update(tx, asked.id, ref=call.id)
    return replace(asked, ref=call.id)


def unbind(tx: Tx, request: MessageId) -> None:
    """Release an open request from its call, which was answered without a decision.

    The next call of the node with the same arguments takes the request over.
    """
    MESSAGES.update(tx, request, ref=None)


def fingerprint(call: ToolCall) -> str:
    """Return a hash of the tool's name and the exact arguments."""
    given = call.arguments
    if "network" in given and given["network"] in _FORMER:
        given = given | {"network": _FORMER[given["network"]]}
    # Sorted: a model may give the same arguments in another order.
    arguments = orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(call.name.encode() + b"\0" + arguments).hexdigest()[:32]


def _shorter(team: Team, limit: timedelta | None) -> timedelta | None:
    """Return the shorter of a limit and of the longest wait that a person has set for the team;
    None: there is neither."""
    set_ = None if team.answer_within_s is None else timedelta(seconds=team.answer_within_s)
    return min((each for each in (limit, set_) if each is not None), default=None)


def limit_of_question(
    team: Team, *, own: timedelta | None = None, has_default: bool = False
) -> timedelta | None:
    """Return how long a question waits: the shorter of the asker's and the team's limits; None:
    for ever.

    Without a limit a question waits for a day if it has a default, or if its team works in cycles:
    nobody may be there, and the next cycle begins only when this one has ended.
    """
    if (limit := _shorter(team, own)) is not None:
        return limit
    return A_DAY if has_default or team.mode == "infinite" else None


def limit_of_call(team: Team, *, is_urgent: bool) -> timedelta | None:
    """Return how long a call waits for a decision; None: for ever. It `is_urgent` if the agent said
    that nothing can be done without it."""
    return _shorter(team, None if is_urgent else AN_HOUR)


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
    limit = limit_of_question(team) if is_question else limit_of_call(team, is_urgent=False)
    return None if limit is None else asked.created_at + limit


def refusal(tx: Tx, node_id: NodeId) -> str | None:
    """Return why a node may send no more requests; None if it may."""
    sent = messages.asks_of_node(tx, node_id)
    if len(sent) >= MOST_ASKS:
        return TOO_MANY
    return DENIED if is_denied_often(sent) else None


def is_denied_often(sent: list[Message]) -> bool:
    """Whether the last decisions on these requests were all refusals."""
    decided = [m for m in sent if m.decision is not None and m.answered_at is not None]
    decided.sort(key=lambda m: (m.answered_at, m.id))
    last = decided[-MOST_DENIALS:]
    return len(last) == MOST_DENIALS and all(m.decision == "deny" for m in last)


def lock(tx: Tx, request_id: MessageId) -> Message:
    """Return a question or request under its lock and that of the agent that asked, whose work can
    then not end before the commit. Raise `Refused` for any other message."""
    asked = MESSAGES.get(tx, request_id)
    if asked.kind not in NEEDS_ANSWER:
        raise Refused(f"{request_id} is a {asked.kind}, not a question; send a message instead.")
    # The agent's row before the question's row: `waiting.interrupt` locks them in this order.
    teams.lock(tx, AgentId(asked.sender))
    return MESSAGES.get(tx, request_id, lock=True)


def close_all(tx: Tx, node_id: NodeId) -> None:
    """Close the open questions and requests of a node that ends. The caller holds the lock of its
    agent's row."""
    for question in messages.to_close(tx, node_id):
        # Later work that makes the same call finds its request.
        close(tx, question, CLOSED, fingerprint=question.fingerprint)


def close(tx: Tx, request: Message, why: str, *, fingerprint: str | None = None) -> None:
    """Close an open question or request without a decision. A later one is asked anew."""
    if end(tx, request.id, why):
        about = {"topic": None, "ref": None, "fingerprint": fingerprint}
        MESSAGES.update(tx, request.id, closed_at=tx.now, **about)


def end(tx: Tx, request_id: MessageId, why: str) -> bool:
    """Take back a question or request that nobody has answered; return False if somebody has."""
    request = MESSAGES.get(tx, request_id, lock=True)
    if not messages.answer(tx, request_id):
        return False
    closed = QuestionAnswered(
        message_id=request_id, node_id=request.node_id, text=why, decision=None, is_closed=True
    )
    tx.emit(request.team_id, closed)
    return True


def asked_before(tx: Tx, node: WorkNode, agent_id: AgentId, call: ToolCall) -> Message | None:
    """Return the request about this call that earlier work of the agent has made lately and nobody
    has decided on, if this work began by itself. A person who gives work is asked anew."""
    if node.trigger_id is None:
        return None
    return messages.closed_ask(tx, agent_id, fingerprint(call), since=tx.now - ASK_LASTS)


def expire(tx: Tx, request_id: MessageId) -> None:
    """Close a request that nobody has decided on, if its node has ended; else look again later."""
    request = MESSAGES.find(tx, request_id)
    if request is None or request.answered_at is not None:
        return
    if request.node_id is not None and not NODES.get(tx, request.node_id).status.is_final:
        waits.set_timer(tx, Timer("ask", request.id), tx.now + ASK_LASTS)
        return
    close(tx, request, "Nobody decided, and the work has ended.")


def offer(request: Message) -> Offer | None:
    """Return what `always` would allow for a request: the kind of grant, and what it names.

    It names no more than the request does: the host, the exact command or the tool; for a request
    that a rule of the team made, the call with exactly these arguments. None if each such call is
    decided by itself, or for a request to run a program again: that is decided run by run.
    """
    named = _names(request.fingerprint, request.call, request.way_out)
    return next(iter(named if request.way_out is None else named[1:]), None)


def covers(grant: Grant, request: Message, *, now: datetime) -> bool:
    """Whether a grant allows the call of a request."""
    named = _names(request.fingerprint, request.call, request.way_out)
    is_held = grant.team_id in (None, request.team_id)
    return is_held and any(grant.allows(*each, now=now) for each in named)


def use_grant(tx: Tx, lease: Lease, call: ToolCall, way_out: WayOut | None) -> bool:
    """Whether a grant allows this call; its use is counted."""
    named = _names(fingerprint(call), call, way_out)
    return any(
        count_use(tx, lease, grant, call_id=call.id, tool=call.name)
        for grant in grants.in_force(tx, lease.team_id)
        if any(grant.allows(*each, now=tx.now) for each in named)
    )


def count_use(tx: Tx, lease: Lease, grant: Grant | None, *, call_id: str, tool: str) -> bool:
    """Count a call that a grant allows; return False if there is none, or if it is used up."""
    if grant is None or not grants.use(tx, grant):
        return False
    used = GrantUsed(grant_id=grant.id, node_id=lease.node_id, call_id=call_id, tool=tool)
    tx.emit(lease.team_id, used)
    return True


def record_grant(tx: Tx, grant: Grant) -> Grant:
    """Store a new grant of a person, with its event, and return it."""
    GRANTS.insert(tx, grant)
    if grant.team_id is not None:
        made = GrantMade(
            grant_id=grant.id, kind=grant.kind, pattern=grant.pattern, from_ask=grant.from_ask
        )
        tx.emit(grant.team_id, made)
    return grant


def _names(fingerprint: str | None, call: ToolCall | None, way_out: WayOut | None) -> list[Offer]:
    """Return what a grant may name to allow a call: the call itself, then its way out."""
    if call is None or fingerprint is None:
        return []
    named = [Offer("call", fingerprint)]
    kind = None if way_out is None else KIND_OF_SINK.get(way_out.sink)
    if way_out is None or kind is None:
        return named
    # Of a command with a limited network also which one: the same words with more ask again.
    if limited := LIMITED_NETWORK.get(way_out.sink):
        named.append(Offer(kind, f"network={limited} {way_out.target}"))
    # A grant for the command with any network also allows it with less network.
    return [*named, Offer(kind, call.name if kind == "tool" else way_out.target)]
