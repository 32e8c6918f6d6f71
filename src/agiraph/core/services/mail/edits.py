"""Edits: a person's message that takes the place of their last one, and what had become of that.

The earlier message stays. If its agent has not read it, nobody reads it any more, and the later one
stands alone. Otherwise the later one says that it takes the place of the earlier one.
"""

from collections.abc import Collection
from typing import NamedTuple

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, PersonId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.text import fence
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import texts
from agiraph.core.services.board.planning import name_of
from agiraph.core.store import messages, nodes, teams
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx

EDITED_BEFORE = "You have edited that message before; edit the one that took its place."
EDITED = "[Runtime] They edited their message before{words}: this one takes its place. "
AT_WORK = "Do this one only, and change what you have done for the one before where they differ."
IN_REPLY = "Answer this one only."
BEGUN = (
    " Work was begun for the one before and goes on: {listed}. Tell it what changes; do not start "
    "it again."
)
STOPPED = " They have stopped the work that was begun for the one before: {listed}."
SHOWN = 300
"""Characters of the earlier message that are repeated."""


class TakenBack(NamedTuple):
    """What the later message takes over from the earlier one."""

    attachments: tuple[Attachment, ...]
    reply_id: NodeId | None
    """The reply that was to answer it, if it has not begun."""


NOTHING = TakenBack((), None)


def find(
    tx: Tx,
    agent_id: AgentId,
    message_id: MessageId,
    to: Collection[AgentId],
    *,
    person_id: PersonId,
) -> dict[AgentId, MessageId]:
    """Return the messages that a later one to these agents takes the place of, by their recipients.

    Raise if the message is not the last one that the person wrote in the agent's conversation, or
    went to other agents.
    """
    agent = teams.AGENTS.get(tx, agent_id)
    found = MESSAGES.find(tx, message_id)
    if found is None or found.team_id != agent.team_id:
        raise NotFound("message", message_id)
    if found.sender != person_id:
        author = name_of(tx, found.sender)
        raise Refused(f"That message is from {author}; you can edit your own messages.")
    if (place := found.said_to or found.recipient) != agent.id:
        raise Refused(f"That message was written to {name_of(tx, place)}; edit it there.")
    if found.kind not in ("message", "nudge"):
        raise Refused("That answers a question and cannot be edited; write a message instead.")
    if found.edited_by is not None:
        raise Conflict(EDITED_BEFORE)
    last = messages.last_written(tx, agent.team_id, agent.id, person_id)
    if message_id not in [message.id for message in last]:
        raise Conflict(
            f"You have written to {agent.name} since; only your last message can be edited."
        )
    earlier = {AgentId(message.recipient): message.id for message in last}
    if set(earlier) != set(to):
        names = ", ".join(name_of(tx, one) for one in earlier)
        raise Refused(f"An edited message goes to those that the one before went to: {names}.")
    return earlier


def take_back(tx: Tx, message_id: MessageId, *, nudge: bool) -> TakenBack:
    """Take a message from the reply that was to answer it, if that has not begun. The caller holds
    the row lock of its recipient, and sets `edited_by`."""
    earlier = MESSAGES.get(tx, message_id, lock=True)
    if earlier.edited_by is not None:  # by another request, since `find`
        raise Conflict(EDITED_BEFORE)
    if nudge != (earlier.kind == "nudge"):
        raise Refused("An edited message gets a reply if the one before did: keep its mode.")
    reply_id = earlier.reply_id
    if reply_id is None or nodes.NODES.get(tx, reply_id).thread_id is not None:
        return TakenBack(earlier.attachments, None)
    MESSAGES.update(tx, message_id, reply_id=None)
    return TakenBack(earlier.attachments, reply_id)


def work_begun(tx: Tx, message: Message) -> list[WorkNode]:
    """Return the work that was begun for a person's message, oldest first."""
    reply = None if message.reply_id is None else messages.reply_of(tx, message.reply_id)
    acts = () if reply is None else reply.acts
    started = {act.about for act in acts if act.kind == "started" and act.undone_at is None}
    if message.node_id is not None:
        started.add(message.node_id)
    return [nodes.NODES.get(tx, node_id) for node_id in sorted(started)]


def open_work(tx: Tx, message: Message) -> list[WorkNode]:
    """Return the work that was begun for a person's message and goes on, oldest first."""
    begun = work_begun(tx, message)
    return [node for node in begun if not (node.status.is_final or node.cancel_requested)]


def at_work(tx: Tx, message: Message) -> str:
    """Return what the work of an agent is told of a message that takes the place of another one;
    empty if the agent has not read that."""
    earlier = _earlier(tx, message)
    return "" if earlier is None else f"\n{_edited(earlier)}{AT_WORK}"


def in_reply(tx: Tx, message: Message) -> str:
    """Return what the reply to a message that takes the place of another one is told: also what
    became of the work that was begun for that; empty if the agent has not read that."""
    earlier = _earlier(tx, message)
    if earlier is None:
        return ""
    said = f"\n\n{_edited(earlier)}{IN_REPLY}"
    if goes_on := open_work(tx, earlier):
        said += BEGUN.format(listed=_listed(goes_on))
    begun = work_begun(tx, earlier)
    stopped = [n for n in begun if n.canceller_id == message.sender and n not in goes_on]
    return said + (STOPPED.format(listed=_listed(stopped)) if stopped else "")


def _earlier(tx: Tx, message: Message) -> Message | None:
    """Return the message that another one takes the place of, if its agent has read it."""
    earlier = None if message.edits is None else MESSAGES.get(tx, message.edits)
    return earlier if earlier is not None and earlier.was_taken_in else None


def _edited(earlier: Message) -> str:
    # The later message does not have the label of what the earlier one quotes.
    words = "" if earlier.label else f": {fence.one_line(earlier.text)[:SHOWN]!r}"
    return EDITED.format(words=words)


def _listed(work: list[WorkNode]) -> str:
    named = [n.id if n.label else f"{texts.title_of(n)!r} ({n.id})" for n in work]
    return texts.join_limited(named, ", ")
