"""Messages: one table; mailboxes, conversations and the inbox are queries on it."""

from collections.abc import Sequence
from datetime import datetime

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Message, Topic
from agiraph.core.domain.work import WorkNode
from agiraph.core.store.rows import Table, holds_all, to_micros
from agiraph.core.store.tx import Tx

MESSAGES = Table("messages", Message)
_UNREAD_BY = "recipient = :recipient and seen_at is null and edited_by is null"


def next_seq(tx: Tx, team_id: TeamId, recipient: str) -> int:
    """Return the next number in a mailbox. The caller holds the row lock of the recipient (for a
    person: of the team), so that no number is given twice."""
    row = tx.one(
        "select max(seq) from messages where team_id = :team_id and recipient = :recipient",
        team_id=team_id,
        recipient=recipient,
    )
    assert row is not None
    return (row[0] or 0) + 1


def is_heard_in(node: str) -> str:
    """Return SQL for whether a message is heard in this node: not in one that was made of it, nor
    if it is meant for another, nor if its sender has edited it."""
    return (
        f"edited_by is null and (reply_id is null or node_id is null or node_id <> {node})"
        f" and (heard_by is null or heard_by = {node})"
    )


def unseen(
    tx: Tx, recipient: str, *, node_id: NodeId | None = None, limit: int = 50
) -> list[Message]:
    """Return the unread messages to somebody, oldest first; with `node_id` those that this node is
    to hear."""
    where, node = _UNREAD_BY, dict[str, str]()
    if node_id is not None:
        where, node = f"{where} and {is_heard_in(':node')}", {"node": node_id}
    where = f"{where} order by seq limit :limit"
    return MESSAGES.select(tx, where, recipient=recipient, limit=limit, **node)


def set_hearer(tx: Tx, message_ids: Sequence[MessageId], node_id: NodeId | None) -> None:
    """Let messages be heard by one node of their recipient alone, or by any."""
    for message_id in message_ids:
        MESSAGES.update(tx, message_id, heard_by=node_id)


def answered_by_replies(
    tx: Tx, recipient: str, between: tuple[NodeId, NodeId]
) -> dict[NodeId, str]:
    """Return the last message that each reply of an agent answers, by the reply's node; of those
    whose ids lie between these two."""
    rows = tx.all(
        "select reply_id, text from messages where recipient = :recipient"
        " and reply_id >= :first and reply_id <= :last order by seq",
        recipient=recipient,
        first=between[0],
        last=between[1],
    )
    return {NodeId(row[0]): str(row[1]) for row in rows}


def mark_answer_unseen(tx: Tx, question_id: str) -> None:
    """Mark the answer to a question as unseen, so that it is delivered as mail."""
    sql = "update messages set seen_at = null where in_reply_to = :id and kind = 'answer'"
    tx.run(sql, id=question_id)


def last_seen_from(tx: Tx, recipient: str, sender: str) -> Message | None:
    """Return the newest message from this sender that its recipient has seen."""
    where = (
        "recipient = :recipient and sender = :sender and kind <> 'result' and kind <> 'failure'"
        " and seen_at is not null order by seq desc limit 1"
    )
    found = MESSAGES.select(tx, where, recipient=recipient, sender=sender)
    return found[0] if found else None


def unseen_from(tx: Tx, sender: str) -> list[Message]:
    """Return the messages of this sender that are neither seen nor answered."""
    where = "sender = :sender and seen_at is null and answered_at is null order by id"
    return MESSAGES.select(tx, where, sender=sender)


def mark_seen(tx: Tx, message_ids: list[MessageId]) -> None:
    for message_id in message_ids:
        MESSAGES.update(tx, message_id, seen_at=tx.now)


def answer(tx: Tx, question: MessageId, **decided: str) -> bool:
    """Close a question; return False if it was closed before: the first answer wins."""
    sets = "".join(f", {field} = :{field}" for field in decided)
    # The condition is part of the update: of two answers at once, the second changes no row.
    sql = f"update messages set answered_at = :now{sets} where id = :id and answered_at is null"
    tx.alarm()  # channels take away the buttons under it
    return tx.run(sql, id=question, now=to_micros(tx.now), **decided) == 1


def reopen(tx: Tx, question: MessageId) -> None:
    """Open an answered question again."""
    tx.run("update messages set answered_at = null, decision = null where id = :id", id=question)
    tx.alarm()


def by_client(tx: Tx, team_id: TeamId, client_id: str) -> Message | None:
    where = "team_id = :team_id and client_id = :client_id"
    found = MESSAGES.select(tx, where, team_id=team_id, client_id=client_id)
    return found[0] if found else None


def about(tx: Tx, topic: Topic, ref: str) -> list[Message]:
    """Return the messages about this, oldest first."""
    return MESSAGES.select(tx, "ref = :ref and topic = :topic order by id", ref=ref, topic=topic)


def about_providers(tx: Tx, team_id: TeamId) -> list[Message]:
    """Return the open questions of this team about providers, which work of all teams waits for."""
    where = "team_id = :team_id and answered_at is null and topic in ('key', 'quota')"
    return MESSAGES.select(tx, where, team_id=team_id)


def request_for(tx: Tx, node_id: NodeId, *, call_id: str, fingerprint: str) -> Message | None:
    """Return the node's request for this call, decided or not; without one, a request for a call
    with this fingerprint that no call waits for."""
    where = (
        "fingerprint = :fingerprint and node_id = :node_id and topic = 'call'"
        " and (ref = :call_id or ref is null) order by ref is null, id limit 1"
    )
    named = {"node_id": node_id, "call_id": call_id, "fingerprint": fingerprint}
    found = MESSAGES.select(tx, where, **named)
    return found[0] if found else None


def asks_of_node(tx: Tx, node_id: NodeId) -> list[Message]:
    """Return the node's approval requests for calls with a way out (`provenance/sinks.py`).

    Decided requests are included; oldest first.
    """
    where = "node_id = :id and kind = 'approval' and way_out is not null order by id"
    return MESSAGES.select(tx, where, id=node_id)


def open_asks(tx: Tx, team_id: TeamId | None = None) -> list[Message]:
    """Return the open requests about calls, of one team or of all, without those of cancelled
    nodes; oldest first."""
    return [m for m in open_questions(tx, team_id) if m.kind == "approval" and m.call is not None]


def open_question(tx: Tx, node_id: NodeId, text: str) -> Message | None:
    """Return the node's newest unanswered question with this text; case and spacing may differ."""
    where = "node_id = :id and kind = 'question' and answered_at is null order by id desc"
    return _in_words(text, MESSAGES.select(tx, where, id=node_id))


def _in_words(text: str, asked: Sequence[Message]) -> Message | None:
    """Return the first question in these words: a model that repeats its question rarely repeats
    its line breaks."""
    wanted = text.casefold().split()
    return next((q for q in asked if q.text.casefold().split() == wanted), None)


def open_of_node(tx: Tx, node_id: NodeId, recipient: str) -> list[Message]:
    """Return the questions of a node to somebody that have no answer yet, oldest first."""
    where = (
        "node_id = :node and recipient = :recipient and kind = 'question' and answered_at is null"
        " order by id"
    )
    return MESSAGES.select(tx, where, node=node_id, recipient=recipient)


_UNDECIDED_SINCE = (
    "closed_at >= :since and not exists (select 1 from messages a where a.kind = 'answer' and"
    " a.in_reply_to = messages.id)"
)
_OPEN = (
    "answered_at is null and kind in ('question', 'approval')"
    " and recipient in (select id from persons)"
)
_NOT_CANCELLED = (
    "not exists (select 1 from nodes n where n.id = messages.node_id and n.status = 'cancelled')"
)


def unanswered_question(tx: Tx, agent_id: AgentId, text: str, *, since: datetime) -> Message | None:
    """Return the agent's oldest question with these words, whatever the spacing and the node, that
    has no answer: it is open, or was closed with its work since then. Those of cancelled nodes do
    not count."""
    where = (
        f"sender = :id and kind = 'question' and (answered_at is null or {_UNDECIDED_SINCE})"
        f" and {_NOT_CANCELLED} order by id"
    )
    return _in_words(text, MESSAGES.select(tx, where, id=agent_id, since=to_micros(since)))


def closed_ask(tx: Tx, agent_id: AgentId, fingerprint: str, *, since: datetime) -> Message | None:
    """Return the agent's request for a call with this fingerprint that was closed with its work
    since then, and that nobody has decided on; None if there is none. Those of cancelled nodes do
    not count."""
    where = (
        f"sender = :id and fingerprint = :fingerprint and {_UNDECIDED_SINCE}"
        f" and {_NOT_CANCELLED} order by id desc limit 1"
    )
    named = {"id": agent_id, "fingerprint": fingerprint, "since": to_micros(since)}
    found = MESSAGES.select(tx, where, **named)
    return found[0] if found else None


def to_close(tx: Tx, node_id: NodeId) -> list[Message]:
    """Return the open questions and requests of a node to people, oldest first."""
    return MESSAGES.select(tx, f"node_id = :id and {_OPEN} order by id", id=node_id)


def answered_question(tx: Tx, node_id: NodeId, text: str, *, since: datetime) -> Message | None:
    """Return the newest answer since then to a question of this node with these words, whatever
    the spacing and the capitals."""
    where = (
        "node_id = :id and kind = 'question' and answered_at >= :since and closed_at is null"
        " order by id desc"
    )
    asked = _in_words(text, MESSAGES.select(tx, where, id=node_id, since=to_micros(since)))
    if asked is None:
        return None
    replies = MESSAGES.select(tx, "in_reply_to = :id order by id desc limit 1", id=asked.id)
    return replies[0] if replies else None


_IN_INBOX = "kind in ('question', 'approval', 'briefing', 'report', 'failure', 'result')"


def open_questions_to(tx: Tx, agent_id: AgentId) -> list[Message]:
    """Return the questions of teammates that an agent has not answered, seen or not."""
    # Both conditions on the kind: `messages_in_inbox` is used for the first one only.
    where = f"recipient = :id and {_IN_INBOX} and kind = 'question' and answered_at is null"
    return MESSAGES.select(tx, f"{where} order by id", id=agent_id)


def inbox(tx: Tx, person_id: PersonId, *, after: str = "", limit: int = 100) -> list[Message]:
    """Return a person's inbox items of all teams, oldest first."""
    where = f"recipient = :person and id > :after and {_IN_INBOX} order by id limit :limit"
    return MESSAGES.select(tx, where, person=person_id, after=after, limit=limit)


def open_questions(tx: Tx, team_id: TeamId | None = None) -> list[Message]:
    """Return the open questions to people, of one team or of all, without those of cancelled
    nodes."""
    where = f"{_OPEN} and {_NOT_CANCELLED} order by id"
    if team_id is None:
        return MESSAGES.select(tx, where)
    return MESSAGES.select(tx, f"team_id = :team_id and {where}", team_id=team_id)


_BETWEEN = (
    "team_id = :team_id and ((sender = :agent and recipient = :person)"
    " or (sender = :person and recipient = :agent))"
)


def conversation(tx: Tx, team_id: TeamId, agent_id: AgentId, person_id: PersonId) -> list[Message]:
    """Return the messages between a person and this agent, oldest first; no thread content."""
    where = f"{_BETWEEN} order by id"
    return MESSAGES.select(tx, where, team_id=team_id, agent=agent_id, person=person_id)


def lately(
    tx: Tx,
    team_id: TeamId,
    agent_id: AgentId,
    person_id: PersonId,
    *,
    limit: int,
    before: str = "",
    mentions: bool = False,
    words: Sequence[str] = (),
) -> list[Message]:
    """Return the last messages of that conversation, or the last before a message; oldest first.

    With `mentions` also what the person wrote there and sent to others by mentioning them. With
    `words`, in lower case, only those whose title or text has all of them.
    """
    earlier = " and id < :before" if before else ""
    elsewhere = " or (sender = :person and topic = 'mention' and ref = :agent)" if mentions else ""
    held, named = holds_all("title || ' ' || text", words)
    where = f"{_BETWEEN[:-1]}{elsewhere}){earlier} and {held} order by id desc limit :limit"
    found = MESSAGES.select(
        tx,
        where,
        team_id=team_id,
        agent=agent_id,
        person=person_id,
        limit=limit,
        before=before,
        **named,
    )
    return found[::-1]


def between(
    tx: Tx,
    team_id: TeamId,
    agent_id: AgentId,
    person_id: PersonId,
    *,
    after: str,
    upto: str,
    limit: int,
) -> list[Message]:
    """Return the newest messages of that conversation after one and up to another, oldest
    first."""
    where = f"{_BETWEEN} and id > :after and id <= :upto order by id desc limit :limit"
    named = {"team_id": team_id, "agent": agent_id, "person": person_id}
    return MESSAGES.select(tx, where, **named, after=after, upto=upto, limit=limit)[::-1]


def told_by_people(
    tx: Tx, team_id: TeamId, agent_id: AgentId
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the newest words of people to this agent, and those to others with whom they went
    to."""
    rows = tx.all(
        "select text, recipient from messages where team_id = :team_id and sender in"
        " (select id from persons) and recipient not in (select id from persons)"
        " order by id desc limit 1000",
        team_id=team_id,
    )
    own = [text for text, recipient in rows if recipient == agent_id]
    return own, [(text, recipient) for text, recipient in rows if recipient != agent_id]


def said_with(
    tx: Tx, team_id: TeamId, agent_id: AgentId, words: Sequence[str], *, limit: int
) -> list[Message]:
    """Return the newest messages between this agent and people with one of these words in them,
    and what others have delivered to people."""
    named = {f"word_{letter}": f"%{word}%" for letter, word in zip("abcdefgh", words, strict=False)}
    said = " or ".join(f"lower(text) like :{name}" for name in named)
    where = (
        "team_id = :team_id and ((sender in (select id from persons) and recipient = :agent) or"
        " (recipient in (select id from persons) and (sender = :agent or"
        " kind in ('result', 'failure', 'report', 'briefing'))))"
        f" and ({said}) order by id desc limit :limit"
    )
    of = {"team_id": team_id, "agent": agent_id, "limit": limit}
    return MESSAGES.select(tx, where, **of, **named) if named else []


def last_written(tx: Tx, team_id: TeamId, agent_id: AgentId, person_id: PersonId) -> list[Message]:
    """Return what a person wrote last in an agent's conversation; several messages if it mentions
    several agents."""
    where = (
        "team_id = :team_id and sender = :person and kind in ('message', 'nudge')"
        " and ((recipient = :agent and topic is null) or (ref = :agent and topic = 'mention'))"
        " order by id desc limit 20"
    )
    found = MESSAGES.select(tx, where, team_id=team_id, agent=agent_id, person=person_id)
    return [m for m in found if (m.created_at, m.text) == (found[0].created_at, found[0].text)]


def to_answer(tx: Tx, reply_id: NodeId) -> list[Message]:
    """Return the messages that this reply node answers, oldest first."""
    return MESSAGES.select(tx, "reply_id = :id order by seq", id=reply_id)


def reply_of(tx: Tx, reply_id: NodeId) -> Message | None:
    """Return the reply that a reply node has sent; None if it has not sent one yet."""
    where = "node_id = :id and in_reply_to is not null and kind = 'message' order by id limit 1"
    found = MESSAGES.select(tx, where, id=reply_id)
    return found[0] if found else None


def read_up_to(
    tx: Tx, team_id: TeamId, agent_id: AgentId, person_id: PersonId, seq: int
) -> list[MessageId]:
    """Mark the agent's messages to a person up to `seq` as seen; return those that were new,
    oldest first. The caller holds the team's row lock."""
    which = (
        " where team_id = :team_id and sender = :agent and recipient = :person and seq <= :seq"
        " and seen_at is null"
    )
    of = {"team_id": team_id, "agent": agent_id, "person": person_id, "seq": seq}
    new = [row[0] for row in tx.all(f"select id from messages{which} order by seq", **of)]
    if new:
        tx.run(f"update messages set seen_at = :now{which}", now=to_micros(tx.now), **of)
    return new


def unread_from(tx: Tx, team_id: TeamId, person_id: PersonId, *, sender: str = "") -> int:
    """Return how many messages a person has not read, of one team or of one agent."""
    row = tx.one(
        "select count(*) from messages where recipient = :person and seen_at is null"
        " and team_id = :team_id and (sender = :sender or :sender = '')",
        person=person_id,
        team_id=team_id,
        sender=sender,
    )
    return 0 if row is None else int(row[0])


def from_people(tx: Tx, team_id: TeamId, *, limit: int) -> list[Message]:
    """Return the messages of all people to anyone on this team, newest first."""
    where = (
        "team_id = :team_id and sender in (select id from persons) order by id desc limit :limit"
    )
    return MESSAGES.select(tx, where, team_id=team_id, limit=limit)


def is_ending_read(tx: Tx, recipient: str, node: WorkNode) -> bool:
    """Return whether this recipient has read a message about the last end of a node."""
    sql = (
        "select 1 from messages where node_id = :id and recipient = :to and created_at >= :ended"
        " and kind in ('result', 'failure') and seen_at is not null limit 1"
    )
    ended = to_micros(node.ended_at or node.created_at)
    return tx.one(sql, id=node.id, to=recipient, ended=ended) is not None


def unread_endings(tx: Tx, recipient: str, node_id: NodeId) -> list[MessageId]:
    """Return the messages about the end of a node that this recipient has not read."""
    where = (
        "node_id = :id and recipient = :to and kind in ('result', 'failure') and seen_at is null"
    )
    return [m.id for m in MESSAGES.select(tx, f"{where} order by id", id=node_id, to=recipient)]


def answers_to(tx: Tx, question_id: MessageId) -> list[Message]:
    """Return the answers to a question, oldest first."""
    return MESSAGES.select(tx, "in_reply_to = :id and kind = 'answer' order by id", id=question_id)


def of_team(tx: Tx, team_id: TeamId) -> list[Message]:
    return MESSAGES.select(tx, "team_id = :team_id order by id", team_id=team_id)


def of_node(tx: Tx, node_id: NodeId) -> list[Message]:
    return MESSAGES.select(tx, "node_id = :node_id order by id", node_id=node_id)


def sent_by_node(tx: Tx, lease: Lease, recipient: str, *, since: datetime) -> list[Message]:
    """Return the messages and reminders that an agent has sent to a recipient in this node after
    the moment `since`, oldest first."""
    where = (
        "node_id = :node_id and sender = :sender and recipient = :recipient "
        "and kind in ('message', 'report') "
        "and created_at > :since order by id"
    )
    named = {"node_id": lease.node_id, "sender": lease.agent_id, "recipient": recipient}
    return MESSAGES.select(tx, where, **named, since=to_micros(since))


def endings_of(tx: Tx, node_id: NodeId) -> list[Message]:
    """Return the messages about the end of a node."""
    where = "node_id = :node_id and kind in ('result', 'failure') order by id"
    return MESSAGES.select(tx, where, node_id=node_id)


def briefings(tx: Tx, team_id: TeamId, *, limit: int) -> list[Message]:
    """Return the coordinator's unasked reports to the team's owner, newest first."""
    where = "team_id = :team_id and kind = 'briefing' order by id desc limit :limit"
    return MESSAGES.select(tx, where, team_id=team_id, limit=limit)
