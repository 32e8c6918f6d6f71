"""Client turns: stores each request of a chat client as one message, and returns the reply to it.

An agent has one conversation with a person. The chats of a client are windows on it, so the agent
knows all of them. The history that the client sends is not read; it may be cut, or edited.
"""

from datetime import datetime, timedelta

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Attachment, Lease
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import AgentId, NodeId, PersonId, ThreadId, new_id
from agiraph.core.domain.messages import Message
from agiraph.core.domain.provenance.labels import of_client
from agiraph.core.domain.records.acts import as_text
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import value
from agiraph.core.domain.work import StopReason, Usage
from agiraph.core.services.board import budgets
from agiraph.core.services.lifecycle import conversation
from agiraph.core.services.members import roster
from agiraph.core.store import messages, nodes, spend, teams
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.spend import DAILY_LIMITS, DailyLimit
from agiraph.core.store.tx import Tx
from agiraph.features.chat_api import rows as client_turns
from agiraph.features.chat_api.rows import CLIENT_TURNS, ClientTurn

NO_REPLY = "(There is no reply: it was stopped before it was written. Send the message again.)"
TO_PROGRAM = (
    "(Your message is with {name}, which is a program and does not chat. What comes of it is shown "
    "with your next message here, and in the inbox.)"
)


@value
class ClientRequest:
    """One request of a chat client to an agent."""

    digest: str
    conversation: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    same_for: timedelta | None = None
    """How long an equal request counts as the same message; None: for ever. A client without
    history may mean the same words again some time later."""


_PLAIN = str.maketrans({sign: f"\\{sign}" for sign in "[]<`"})
"""For statements of the runtime: clients show Markdown, and make no link or picture of them."""


@value
class ClientReply:
    """The stored reply to a chat client's turn; a client that repeats the turn gets it again."""

    text: str
    at: datetime
    usage: Usage = Usage()
    did: str = ""
    """What stands behind the text: what the reply did, a line each."""


@value
class ModelName:
    """An agent under the name by which a client chooses it as a model."""

    id: str
    agent_id: AgentId
    created_at: datetime


def models(tx: Tx) -> list[ModelName]:
    """Return `team` (its coordinator) and `team/agent` for each member of each team.

    Of teams with the same name, the newest has it; the others are named by their id.
    """
    found: list[ModelName] = []
    for name, team in roster.teams_by_name(tx).items():
        members = teams.members(tx, team.id)
        shown = [(name, agent) for agent in members[:1]]
        shown += [(f"{name}/{agent.name}", agent) for agent in members]
        found += [
            ModelName(id=shown_name, agent_id=agent.id, created_at=agent.created_at)
            for shown_name, agent in shown
        ]
    return found


def find_agent(tx: Tx, model: str) -> Agent:
    """Return the agent of a model name: `team/agent`, or `team` for its coordinator."""
    if (agent := roster.find_by_path(tx, model)) is None:
        raise NotFound("model", model, known="GET /v1/models lists them: `team` or `team/agent`.")
    return agent


def say(
    tx: Tx, agent_id: AgentId, request: ClientRequest, *, person_id: PersonId, client: str
) -> ClientTurn:
    """Store a request as the person's message; return the stored turn if the same request came
    before. A program wrote the request, so the message has the label of this client.

    Takes the agent's row lock, so that two copies which arrive at the same time become one message.
    """
    agent = teams.lock(tx, agent_id)
    before = client_turns.last_with(tx, request.digest)
    if before is not None and (
        request.same_for is None or before.created_at + request.same_for > tx.now
    ):
        return before
    last = client_turns.last_of(tx, request.conversation)
    newest = client_turns.last_seq(tx, agent.team_id, person_id)
    said = conversation.say(
        tx,
        agent.id,
        request.text,
        person_id=person_id,
        attachments=request.attachments,
        label=of_client(client),
    )
    turn = ClientTurn(
        id=new_id("turn"),
        digest=request.digest,
        conversation=request.conversation,
        person_id=person_id,
        team_id=agent.team_id,
        agent_id=agent.id,
        message_id=said.id,
        created_at=tx.now,
        reports_after=newest if last is None else min(last.reports_upto, newest),
        reports_upto=newest,
    )
    return CLIENT_TURNS.insert(tx, turn)


def reports(tx: Tx, turn: ClientTurn) -> list[Message]:
    """Return the messages that the agent has sent to the person, unasked, since the conversation's
    last turn."""
    return client_turns.reports(tx, turn)


def reply(tx: Tx, turn: ClientTurn) -> ClientReply | None:
    """Return the reply to a turn; None while it is being written."""
    said = MESSAGES.get(tx, turn.message_id)
    while said.is_withdrawn and said.edited_by is not None:
        said = MESSAGES.get(tx, said.edited_by)  # which has taken over the reply
    if said.reply_id is None:
        name = teams.AGENTS.get(tx, turn.agent_id).name
        return ClientReply(text=TO_PROGRAM.format(name=name), at=said.created_at)
    found = client_turns.reply(tx, said.reply_id, turn)
    if found is not None:
        lines = spend.of_node(tx, said.reply_id)
        usage = Usage(
            input_tokens=sum(line.input_tokens for line in lines),
            output_tokens=sum(line.output_tokens for line in lines),
            cached_tokens=sum(line.cached_tokens for line in lines),
            thinking_tokens=sum(line.thinking_tokens for line in lines),
        )
        did = visible(as_text(found.acts)).translate(_PLAIN)
        return ClientReply(text=found.text, at=found.created_at, usage=usage, did=did)
    if nodes.NODES.get(tx, said.reply_id).status.is_final:
        return ClientReply(text=NO_REPLY, at=tx.now)
    return None


def payer(tx: Tx, agent: Agent, person_id: PersonId) -> NodeId | None:
    """Return the node that pays for a side call about the agent's conversation: that of its last
    reply, else the last node of its work; None if the agent has had neither."""
    recent = messages.lately(tx, agent.team_id, agent.id, person_id, limit=20)
    replies = [message.reply_id for message in recent if message.reply_id is not None]
    last = nodes.last_of(tx, agent.id)
    return replies[-1] if replies else (None if last is None else last.id)


def spent_limit(tx: Tx, payer_id: NodeId) -> StopReason | None:
    """Return which limit of the node that pays for side calls is used up, if one is."""
    return budgets.exhausted_above(tx, nodes.NODES.get(tx, payer_id))


def charge(tx: Tx, agent: Agent, node_id: NodeId, *, model: str, usage: Usage) -> None:
    """Charge the cost of a side call to this node. A side call has no thread."""
    lease = Lease(
        team_id=agent.team_id, agent_id=agent.id, node_id=node_id, thread_id=ThreadId(""), epoch=0
    )
    spend.settle(tx, lease, purpose=spend.SIDE_CALL, model=model, usage=usage)


def has_money_today(tx: Tx, usd_per_day: float) -> bool:
    """Whether the daily limit of all teams leaves money for a call."""
    day = spend.day_of(tx.now)
    row = DAILY_LIMITS.find(tx, day) or DailyLimit(day=day)
    return not row.is_reached(usd_per_day, spend.usd_of_day(tx, day) + spend.reserved_usd(tx))
