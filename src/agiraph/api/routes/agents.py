"""Agent routes: a team's members, messages to them, and their threads."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agiraph.api.deps import After, ApiDep, Limit, PersonDep, Query, SaidByDep
from agiraph.api.presenters import agent_view, message_view, node_view, thread_views, turn_views
from agiraph.api.problems import documented
from agiraph.api.requests import (
    NO_EFFORT,
    AttachmentRequest,
    Attachments,
    EffortChange,
    chosen_effort,
    received,
)
from agiraph.api.routing import Body, Router
from agiraph.api.views import AgentView, MessageView, NodeView, ThreadView, TurnView
from agiraph.core.domain.chat import Transcript
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import AgentId, MessageId, ThreadId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.window_use import FULL, WindowUse, window_parts
from agiraph.core.services import search
from agiraph.core.services.lifecycle import conversation, settings
from agiraph.core.services.mail import bus, edits, inbox
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import EVERYONE
from agiraph.core.store import messages, teams, threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx

router: Router = Router("agents")

MOST_MENTIONS = 20


class MessageRequest(Body, example={"message": "Also include pricing, please."}):
    """A message from the person to an agent."""

    message: str = Field(
        max_length=bus.TEXT_LIMIT, description="May be empty if there are attachments."
    )
    mode: Literal["send", "nudge"] = Field(
        default="send", description="A nudge needs no reply and goes to the running node."
    )
    client_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="A message with a known id is not sent again; the first one is returned.",
    )
    attachments: Attachments = Field(default_factory=list[AttachmentRequest])
    mentions: list[str] = Field(
        default_factory=list[str],
        max_length=MOST_MENTIONS,
        description="Ids of agents of the team. The message then goes to each of them once, and to "
        "this agent only if it is among them; its conversation shows the message.",
    )
    edits: str | None = Field(
        default=None,
        description="Id of the last message that you wrote in this conversation. This one takes "
        "its place, goes to the same agents and keeps its files and its mode.",
    )
    stop_work: bool = Field(
        default=False, description="With `edits`: stop the work that was begun for that message."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.message.strip() and not self.attachments:
            raise ValueError("is empty; write a message or attach a file")
        if self.stop_work and self.edits is None:
            raise ValueError("`stop_work` is about the message that `edits` names: set both")
        return self


class BroadcastRequest(Body, example={"message": "We stop at noon."}):
    message: str = Field(min_length=1, max_length=bus.TEXT_LIMIT)


class MarkReadRequest(Body, example={"seq": 12}):
    seq: int = Field(ge=0, le=2**62, description="The `seq` of the last message that was read.")


class AgentChanges(Body, example={"effort": "high"}):
    """What to change; what is left out stays as it is."""

    effort: EffortChange | None = Field(
        default=None, description="How much the model thinks first." + NO_EFFORT
    )
    model: str | None = Field(default=None, min_length=1, max_length=500)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.effort is None and self.model is None:
            raise ValueError("set `effort` or `model`")
        return self


@router.read("/teams/{team}/agents", 404)
def list_agents(
    tx: Tx,
    team: str,
    person: PersonDep,
    all: Annotated[bool, Query(description="Include agents that have left.")] = False,
) -> list[AgentView]:
    """List the members of a team, coordinator first."""
    members = roster.members(tx, teams.find(tx, team).id, all=all)
    return [agent_view(tx, member, person) for member in members]


@router.read("/agents/{agent}", 404)
def get_agent(tx: Tx, agent: str, person: PersonDep) -> AgentView:
    """Return one agent with what it is doing now."""
    return agent_view(tx, roster.member(tx, AGENTS.get(tx, agent)), person)


@router.patch("/agents/{agent}", responses=documented(404))
async def change_agent(agent: str, body: AgentChanges, api: ApiDep, person: PersonDep) -> AgentView:
    """Change an agent's model, or how much it thinks. It counts from the agent's next step on."""
    if body.model is not None:
        await api.models.learn(body.model)
        api.check_model(body.model)

    def change(tx: Tx) -> AgentView:
        found = AGENTS.get(tx, AgentId(agent))
        if body.model is not None:
            found = settings.set_model_of_agent(tx, found.id, body.model)
        if body.effort is not None:
            found = settings.set_effort_of_agent(tx, found.id, chosen_effort(body.effort))
        return agent_view(tx, roster.member(tx, found), person)

    return await api.store.write_first(change)


@router.write_once("/agents/{agent}/send", 404, 409, status=202)
def send(
    tx: Tx, agent: str, body: MessageRequest, person: PersonDep, said_by: SaidByDep
) -> MessageView:
    """Send a message to an agent, or to the agents that it mentions. It is stored when this
    returns; the reply comes later. With mentions, the first of the messages is returned. A message
    that `edits` another one says so to an agent that had read that; one that had not reads only
    the new one. Work goes on, unless you say `stop_work`."""
    found = AgentId(AGENTS.get(tx, agent).id)
    said = conversation.say_to_mentioned(
        tx,
        found,
        [AgentId(one) for one in body.mentions] or [found],
        body.message,
        person_id=person,
        client_id=body.client_id,
        nudge=body.mode == "nudge",
        attachments=received(body.attachments),
        label=said_by,
        edits=None if body.edits is None else MessageId(body.edits),
        stops_work=body.stop_work,
    )
    # As it is stored: without the secrets in it.
    return message_view(tx, MESSAGES.get(tx, said[0].id))


@router.read("/messages/{message}/work", 404)
def get_work_of_message(tx: Tx, message: str, person: PersonDep) -> list[NodeView]:
    """Return the open work that was begun for a message of yours: what `stop_work` of an edit
    stops."""
    found = MESSAGES.get(tx, message)
    if found.sender != person:
        raise NotFound("message", message)
    return [node_view(tx, node) for node in edits.open_work(tx, found)]


@router.write("PUT", "/agents/{agent}/read", 404, status=204)
def read_up_to(tx: Tx, agent: str, body: MarkReadRequest, person: PersonDep) -> None:
    """Mark what you have read of your conversation with this agent. The mark never moves back."""
    inbox.read_conversation(tx, AGENTS.get(tx, agent), person, body.seq)


@router.write_once("/teams/{team}/broadcast", 404, 409, status=202)
def broadcast(
    tx: Tx, team: str, body: BroadcastRequest, person: PersonDep, said_by: SaidByDep
) -> list[MessageView]:
    """Send a message to every member of the team."""
    found = teams.find(tx, team)
    draft = Draft(
        recipient=EVERYONE, team_id=found.id, sender=person, text=body.message, label=said_by
    )
    sent = bus.broadcast(tx, draft)
    return [message_view(tx, MESSAGES.get(tx, message.id)) for message in sent]


@router.read("/agents/{agent}/conversation", 404)
def get_conversation(
    tx: Tx,
    agent: str,
    person: PersonDep,
    before: Annotated[str, Query(description="The first id of the next page.")] = "",
    query: Annotated[
        str, Query(max_length=500, description="Only messages with all of these words.")
    ] = "",
    limit: Limit = 100,
) -> list[MessageView]:
    """Return the messages between the person and this agent, oldest first: the newest page, or
    the page before an id. A message that the person wrote here and that went to the agents it
    mentions is included; the agent's threads are not. With `query`, only the messages whose title
    or text has all of its words, in whatever case."""
    found = AGENTS.get(tx, agent)
    words = search.words_of(query)
    said = messages.lately(
        tx, found.team_id, found.id, person, limit=limit, before=before, mentions=True, words=words
    )
    return [message_view(tx, message) for message in said]


@router.read("/agents/{agent}/threads", 404)
def list_threads(tx: Tx, agent: str, after: After = "", limit: Limit = 100) -> list[ThreadView]:
    """List an agent's threads (work, replies, reflections), oldest first."""
    found = threads.of_agent(tx, AGENTS.get(tx, agent).id)
    known: list[str] = [t.id for t in found]
    start = known.index(after) + 1 if after in known else 0
    return thread_views(tx, AgentId(agent), found[start : start + limit])


@router.get("/threads/{thread}/window", responses=documented(404))
async def get_window(thread: str, api: ApiDep) -> WindowUse:
    """Return what fills the model's context window in a thread."""

    def read(tx: Tx) -> tuple[str, Transcript]:
        row = threads.THREADS.get(tx, thread)
        found = Transcript(threads.turns(tx, ThreadId(row.id)))
        reply = found.last_reply
        agent = AGENTS.get(tx, row.agent_id)
        return (reply.model if reply else None) or agent.model, found

    model, found = await api.store.read(read)
    window = api.models.known_window(model) if model else None
    return WindowUse(
        model=model,
        tokens=found.next_tokens,
        window=window,
        shortened_at=None if window is None else int(FULL * window),
        parts=window_parts(found),
    )


@router.read("/threads/{thread}", 404)
def get_thread(
    tx: Tx,
    thread: str,
    after: Annotated[
        int, Query(ge=0, le=2**40, description="The number of the last turn you have.")
    ] = 0,
    limit: Limit = 200,
) -> list[TurnView]:
    """Return the turns of a thread."""
    row = threads.THREADS.get(tx, thread)
    found, got = ThreadId(row.id), after
    shown: list[TurnView] = []
    known = threads.turns(tx, found, after=after - 1, limit=1) if after else []
    before = known[0] if known else None
    # Intents are internal. Fill the page without them: an empty page would look like the end.
    while len(shown) < limit and (rows := threads.turns(tx, found, after=got, limit=limit)):
        shown += turn_views(tx, row.team_id, rows, before)
        before, got = rows[-1], rows[-1].seq
    return shown[:limit]
