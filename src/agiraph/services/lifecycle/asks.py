"""Asks: requests for a person's approval of a call, whose agent goes on with other work meanwhile.

Requests and questions close when their node ends. The person's channels are told of a request that
no call waits for once a day with the team's digest, or at once when a call begins to wait for it.
"""

from agiraph.domain.chat import Lease, ToolCall
from agiraph.domain.events.mail import QuestionAnswered
from agiraph.domain.grants import ASK_LASTS
from agiraph.domain.ids import AgentId, MessageId, NodeId
from agiraph.domain.messages import Message
from agiraph.domain.sinks import WayOut
from agiraph.domain.waits import Timer
from agiraph.domain.work import WorkNode
from agiraph.services.board import approvals
from agiraph.services.mail import bus, deliveries
from agiraph.store import deliveries as delivery_rows
from agiraph.store import messages, waits
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

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


def send(
    tx: Tx, lease: Lease, call: ToolCall, way_out: WayOut | None, *, text: str, parks: bool
) -> Message:
    """Ask the node's person to approve a call; with `parks` the call waits for the decision."""
    ref = approvals.ref if parks else approvals.open_ref
    asked = bus.ask(
        tx,
        lease,
        text=text,
        kind="approval",
        options=("approve", "deny"),
        ref=ref(lease.node_id, call),
        call=call,
        way_out=way_out,
        notifies=parks,
    )
    return asked


def notify(tx: Tx, request: Message) -> None:
    """Send a request to the person's channels, unless they have it: a call waits for it now."""
    if not delivery_rows.of_message(tx, request.id):
        deliveries.queue(tx, request)


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


def close_all(tx: Tx, node_id: NodeId) -> None:
    """Close the open questions and requests of a node that ends. The caller holds the lock of its
    agent's row."""
    for question in messages.to_close(tx, node_id):
        close(tx, question, CLOSED, ref=approvals.closed_ref(question))


def close(tx: Tx, request: Message, why: str, *, ref: str | None = None) -> None:
    """Close an open question or request without a decision. A later one is asked anew."""
    MESSAGES.get(tx, request.id, lock=True)
    if messages.answer(tx, request.id):
        MESSAGES.update(tx, request.id, ref=ref, closed_at=tx.now)
        closed = QuestionAnswered(
            message_id=request.id, node_id=request.node_id, text=why, decision=None, is_closed=True
        )
        tx.emit(request.team_id, closed)


def asked_before(tx: Tx, node: WorkNode, agent_id: AgentId, call: ToolCall) -> Message | None:
    """Return the request about this call that earlier work of the agent has made lately and nobody
    has decided on, if this work began by itself. A person who gives work is asked anew."""
    if node.trigger_id is None:
        return None
    ref = approvals.closed_ref_of(call)
    return messages.closed_ask(tx, agent_id, ref, since=tx.now - ASK_LASTS)


def expire(tx: Tx, request_id: MessageId) -> None:
    """Close a request that nobody has decided on, if its node has ended; else look again later."""
    request = MESSAGES.find(tx, request_id)
    if request is None or request.answered_at is not None:
        return
    if request.node_id is not None and not NODES.get(tx, request.node_id).status.is_final:
        waits.set_timer(tx, Timer("ask", request.id), tx.now + ASK_LASTS)
        return
    close(tx, request, "Nobody decided, and the work has ended.")
