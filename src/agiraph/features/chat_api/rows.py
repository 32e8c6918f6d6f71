"""Client turns: the requests of chat clients over `/v1`, each with the message it became."""

from datetime import datetime

from agiraph.core.domain.ids import AgentId, MessageId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.value import value
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx


@value
class ClientTurn:
    """One request of a chat client, and the person's message that was stored for it."""

    id: str
    digest: str
    """The hash of the request: the same request again has the same one."""
    conversation: str
    """The hash of the client's conversation."""
    person_id: PersonId
    team_id: TeamId
    agent_id: AgentId
    message_id: MessageId
    created_at: datetime
    reports_after: int
    """The response shows the agent's messages to the person after this `seq` …"""
    reports_upto: int
    """… up to this one."""


CLIENT_TURNS = Table("client_turns", ClientTurn)
TABLES = (CLIENT_TURNS,)


def last_with(tx: Tx, digest: str) -> ClientTurn | None:
    """Return the newest turn of a request. The caller holds the agent's row lock."""
    where = "digest = :digest order by id desc limit 1"
    found = CLIENT_TURNS.select(tx, where, digest=digest)
    return found[0] if found else None


def last_of(tx: Tx, conversation: str) -> ClientTurn | None:
    """Return the newest turn of a conversation."""
    where = "conversation = :conversation order by id desc limit 1"
    found = CLIENT_TURNS.select(tx, where, conversation=conversation)
    return found[0] if found else None


def last_seq(tx: Tx, team_id: TeamId, person_id: PersonId) -> int:
    """Return the `seq` of the newest message of a team to a person; 0 without one."""
    sql = "select max(seq) from messages where team_id = :team_id and recipient = :person"
    row = tx.one(sql, team_id=team_id, person=person_id)
    return 0 if row is None or row[0] is None else int(row[0])


def reports(tx: Tx, turn: ClientTurn) -> list[Message]:
    """Return the agent's messages that stand before the reply in the turn's response: reports,
    questions and unasked messages, but no replies. Results of work that another conversation of a
    client asked for are left out."""
    where = (
        "team_id = :team_id and recipient = :person and sender = :agent"
        " and seq > :after and seq <= :upto and not (kind = 'message' and in_reply_to is not null)"
        " and not exists (select 1 from messages asked join client_turns c"
        " on c.message_id = asked.id where asked.node_id = messages.node_id"
        " and c.conversation <> :conversation) order by seq"
    )
    return MESSAGES.select(
        tx,
        where,
        team_id=turn.team_id,
        person=turn.person_id,
        agent=turn.agent_id,
        after=turn.reports_after,
        upto=turn.reports_upto,
        conversation=turn.conversation,
    )


def reply(tx: Tx, reply_id: NodeId, turn: ClientTurn) -> Message | None:
    """Return the message that a reply node has sent to the person; None before that."""
    where = (
        "node_id = :node_id and sender = :agent and recipient = :person and kind = 'message'"
        " and in_reply_to is not null order by id limit 1"
    )
    found = MESSAGES.select(tx, where, node_id=reply_id, agent=turn.agent_id, person=turn.person_id)
    return found[0] if found else None
