"""Undoing: take back one thing that a reply did, because the person did not mean it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from agiraph.domain.acts import Act, ActKind, describe
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.events.mail import ReplyActUndone
from agiraph.domain.ids import SYSTEM, AgentId, MessageId, NodeId, TriggerId
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.messages import TAKES_BACK, Message
from agiraph.domain.persons import is_person
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import planning, texts
from agiraph.services.knowledge import items
from agiraph.services.lifecycle import endings, retries, teams
from agiraph.services.mail import bus
from agiraph.services.triggers import definitions
from agiraph.store import dependencies, knowledge, messages, nodes
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx

GO_ON = "[Runtime] The person takes back that this work was stopped: go on."
READ = " What they had said to you before and you have not read counts again: {words}."
GOES_ON = " These tasks of yours go on too: {tasks}."
STAYS = " These stay cancelled; give them again if you still need them: {tasks}."
TAKEN_BACK = "The person takes back what reached you from them: {words!r}. Undo it, too."
NOT_MEANT = (
    "The person takes back the answer to your question {name!r}: {words!r} was not meant "
    "for it. The question is open again; to wait for the answer, ask it once more, word for word."
)


def undo(tx: Tx, message_id: MessageId, place: int) -> Message:
    """Undo the act at this place of a reply; return the reply with the act marked as undone.

    Raise `Conflict` if it was undone before or cannot be undone any more.
    """
    reply = MESSAGES.get(tx, message_id, lock=True)
    if is_person(reply.sender) or not 0 <= place < len(reply.acts):
        raise NotFound("act", f"{message_id}/{place}")
    act = reply.acts[place]
    if act.undone_at is not None:
        raise Conflict(f"Undone before: {describe(replace(act, undone_at=None))}")
    _UNDO[act.kind](tx, reply, act)
    undone = replace(act, undone_at=tx.now)
    MESSAGES.update(tx, reply.id, acts=(*reply.acts[:place], undone, *reply.acts[place + 1 :]))
    tx.emit(
        reply.team_id,
        ReplyActUndone(
            message_id=reply.id,
            sender=reply.sender,
            recipient=reply.recipient,
            place=place,
            kind=act.kind,
            about=act.about,
            text=describe(undone),
        ),
    )
    return MESSAGES.get(tx, reply.id)


def _take_back_words(tx: Tx, reply: Message, act: Act) -> None:
    node = NODES.get(tx, NodeId(act.about))
    if node.status.is_final or node.assignee_id is None:
        raise Conflict("The work that was told has ended; nobody there hears it any more.")
    _tell(tx, reply, node.assignee_id, TAKEN_BACK.format(words=act.words))


def _cancel_work(tx: Tx, reply: Message, act: Act) -> None:
    node = NODES.get(tx, NodeId(act.about))
    if node.status.is_final:
        raise Conflict(f"That work is {node.status} already; there is nothing to undo.")
    endings.cancel(tx, node.id)
    if (ended := NODES.get(tx, node.id)).status.is_final:
        teams.close_after(tx, ended)


def _go_on(tx: Tx, reply: Message, act: Act) -> None:
    """Put the stopped work back, and below it what was stopped with it and can go on."""
    node = NODES.get(tx, NodeId(act.about), lock=True)
    since = reply.created_at if reply.node_id is None else NODES.get(tx, reply.node_id).created_at
    below = _stopped_below(tx, node, since)
    if any(each.cancel_requested and not each.status.is_final for each in (node, *below)):
        raise Conflict("That work stops at its next step. Try again in a moment.")
    back = [each for each in below if _can_go_on(tx, each)]
    # Of a goal that had ended only what the team does for it by itself was stopped.
    is_resting = node.is_goal and node.status.is_final
    if node.status is not NodeStatus.CANCELLED and not back and not is_resting:
        raise Conflict(f"That work is {node.status} now; there is nothing to undo.")
    if node.status is NodeStatus.CANCELLED:
        gone = [each for each in below if each not in back]
        read = READ.format(words=act.words) if act.words else ""
        told = GO_ON + read + _listed(GOES_ON, back) + _listed(STAYS, gone)
        retries.put_back(tx, node, {}, text=told)
    for each in back:
        retries.put_back(tx, NODES.get(tx, each.id, lock=True), {}, text=GO_ON)
    if node.is_goal or node.trigger_id is not None:
        definitions.revive(tx, node.team_id, with_goal=True)


def _stopped_below(tx: Tx, node: WorkNode, since: datetime) -> list[WorkNode]:
    """Return the tasks below a node that ended with it or are about to, those above first. What its
    agents gave up themselves, reviews and parts of a research are not among them."""
    found: list[WorkNode] = []
    for child in nodes.children(tx, node.id):
        if child.given_up is None and not child.is_step and _was_stopped(child, since):
            found += [child, *_stopped_below(tx, child, since)]
    return found


def _was_stopped(node: WorkNode, since: datetime) -> bool:
    if not node.status.is_final:
        return node.cancel_requested
    is_cancelled = node.status is NodeStatus.CANCELLED
    return is_cancelled and node.ended_at is not None and node.ended_at >= since


def _can_go_on(tx: Tx, node: WorkNode) -> bool:
    """Whether a cancelled task can be put back: it had begun or could have, outside a stage."""
    is_ready = not any(planning.is_unmet(needed) for needed in dependencies.needs(tx, node.id))
    return node.assignee_id is not None and node.stage_id is None and is_ready


def _listed(sentence: str, tasks: list[WorkNode]) -> str:
    named = texts.join_limited([f"{texts.title_of(task)!r} ({task.id})" for task in tasks])
    return sentence.format(tasks=named) if tasks else ""


def _reopen(tx: Tx, reply: Message, act: Act) -> None:
    question = MESSAGES.get(tx, MessageId(act.about), lock=True)
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    if node is None or node.status.is_final:
        raise Conflict("The work that asked has ended; that answer cannot be taken back any more.")
    messages.reopen(tx, question.id)
    text = NOT_MEANT.format(name=act.name, words=act.words)
    _tell(tx, reply, AgentId(question.sender), text, question.label)


def _cancel_trigger(tx: Tx, reply: Message, act: Act) -> None:
    trigger = TRIGGERS.get(tx, act.about)
    if trigger.status not in ("active", "paused"):
        raise Conflict("It has fired or ended already; there is nothing to undo.")
    definitions.cancel(tx, TriggerId(act.about))


def _undo_change(tx: Tx, reply: Message, act: Act) -> None:
    since = reply.created_at if reply.node_id is None else NODES.get(tx, reply.node_id).created_at
    made = knowledge.changes_between(tx, reply.team_id, since, reply.created_at)
    is_removal = act.kind == "forgot"
    found = [
        change
        for change in made
        if any(touched.id == act.about for touched in change.touched)
        and (change.verb == "removed") == is_removal
    ]
    if not found:
        raise Conflict("It was known before this reply, which has changed nothing.")
    if found[-1].undone_at is not None:
        raise Conflict("It was undone already, under Memory.")
    try:
        items.undo(tx, found[-1].id)
    except Refused:
        raise Conflict("It was changed again since then. Change it under Memory.") from None


def _tell(tx: Tx, reply: Message, to: AgentId, text: str, label: Label = CLEAN) -> None:
    """Tell an agent at its next step, before it can end its work; it starts no work, and a wait for
    teammates ends."""
    bus.send(
        tx,
        team_id=reply.team_id,
        sender=SYSTEM,
        recipient=to,
        kind="notice",
        text=text,
        ref=TAKES_BACK,
        refusable=False,
        label=label,
    )


_UNDO: Mapping[ActKind, Callable[[Tx, Message, Act], None]] = {
    "told": _take_back_words,
    "started": _cancel_work,
    "stopped": _go_on,
    "answered": _reopen,
    "reminder": _cancel_trigger,
    "trigger": _cancel_trigger,
    "remembered": _undo_change,
    "forgot": _undo_change,
}
