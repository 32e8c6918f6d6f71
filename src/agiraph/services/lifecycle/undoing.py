"""Undoing: take back one thing that a reply did, because the person did not mean it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from agiraph.domain.acts import Act, ActKind, describe
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.ids import AgentId, MessageId, NodeId, PersonId, TriggerId
from agiraph.domain.messages import Message
from agiraph.domain.persons import is_person
from agiraph.domain.work import NodeStatus
from agiraph.services.knowledge import items
from agiraph.services.lifecycle import endings, retries
from agiraph.services.mail import bus
from agiraph.services.triggers import definitions
from agiraph.store import knowledge, messages
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx

GO_ON = (
    "[Runtime] The person takes back that this work was stopped: go on. Tasks below it were "
    "cancelled with it; give those again that you still need."
)
TAKEN_BACK = "I take back what reached you from me: {words!r}. Do nothing about it."
NOT_MEANT = "I take back my answer to your question {name!r}: {words!r} was not meant for it."


def undo(tx: Tx, message_id: MessageId, place: int, *, person_id: PersonId) -> Message:
    """Undo the act at this place of a reply; return the reply with the act marked as undone.

    Raise `Conflict` if it was undone before, and `Refused` if it cannot be undone any more.
    """
    reply = MESSAGES.get(tx, message_id, lock=True)
    if is_person(reply.sender) or not 0 <= place < len(reply.acts):
        raise NotFound("act", f"{message_id}/{place}")
    act = reply.acts[place]
    if act.undone_at is not None:
        raise Conflict(f"This was undone already: {describe(act)}.")
    _UNDO[act.kind](tx, reply, act, person_id)
    acts = [*reply.acts]
    acts[place] = replace(act, undone_at=tx.now)
    MESSAGES.update(tx, reply.id, acts=tuple(acts))
    return MESSAGES.get(tx, reply.id)


def _take_back_words(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    node = NODES.get(tx, NodeId(act.about))
    if node.status.is_final or node.assignee_id is None:
        raise Refused("The work that was told has ended; nobody there hears it any more.")
    _say(tx, reply, node.assignee_id, TAKEN_BACK.format(words=act.words), person_id)


def _cancel_work(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    if NODES.get(tx, NodeId(act.about)).status.is_final:
        raise Refused("That work has ended already; there is nothing to undo.")
    endings.cancel(tx, NodeId(act.about))


def _go_on(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    node = NODES.get(tx, NodeId(act.about), lock=True)
    if node.status is NodeStatus.CANCELLED:
        retries.put_back(tx, node, {}, text=GO_ON)
    elif node.is_goal and node.status.is_final:
        pass  # only what the team does by itself for the goal was stopped
    elif node.status.is_final or not node.cancel_requested:
        raise Refused(f"That work is {node.status} now; there is nothing to undo.")
    else:
        raise Refused("That work stops at its next step. Try again in a moment.")
    if node.is_goal or node.trigger_id is not None:
        definitions.revive(tx, node.team_id, with_goal=True)


def _reopen(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    question = MESSAGES.get(tx, MessageId(act.about), lock=True)
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    if node is None or node.status.is_final:
        raise Refused("The work that asked has ended with this answer.")
    messages.reopen(tx, question.id)
    text = NOT_MEANT.format(name=act.name, words=act.words)
    _say(tx, reply, AgentId(question.sender), text, person_id)


def _cancel_trigger(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    trigger = TRIGGERS.get(tx, act.about)
    if trigger.status not in ("active", "paused"):
        raise Refused("It has fired or ended already; there is nothing to undo.")
    definitions.cancel(tx, TriggerId(act.about))


def _undo_change(tx: Tx, reply: Message, act: Act, person_id: PersonId) -> None:
    change = knowledge.last_change_of(tx, act.about)
    if change is None:
        raise Refused("Nothing is known of it any more.")
    items.undo(tx, change.id)


def _say(tx: Tx, reply: Message, to: AgentId, text: str, person_id: PersonId) -> None:
    bus.send(
        tx,
        team_id=reply.team_id,
        sender=person_id,
        recipient=to,
        text=text,
        sets_to_work=False,
        refusable=False,
    )


_UNDO: Mapping[ActKind, Callable[[Tx, Message, Act, PersonId], None]] = {
    "told": _take_back_words,
    "started": _cancel_work,
    "stopped": _go_on,
    "answered": _reopen,
    "reminder": _cancel_trigger,
    "trigger": _cancel_trigger,
    "remembered": _undo_change,
    "forgot": _undo_change,
}
