"""Steering: reads the messages that persons have sent to a research job while it runs."""

from agiraph.core.domain.ids import MessageId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.text import quotations
from agiraph.core.store import threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx


def heard(tx: Tx, thread_id: ThreadId) -> list[Message]:
    """Return the messages of persons that a job's thread holds, oldest first."""
    refs = (turn.ref for turn in threads.turns(tx, thread_id) if turn.role == "user")
    found = (MESSAGES.find(tx, MessageId(ref)) for ref in refs if ref)
    return [message for message in found if message is not None and is_person(message.sender)]


def as_text(said: list[Message], *, thread: str) -> tuple[str, Label]:
    """Return these messages for the prompt of a thread, and their label; empty without any."""
    words = [quotations.enclose_quoted(message.text, thread=thread) for message in said]
    return "\n\n".join(words), join(message.label for message in said)
