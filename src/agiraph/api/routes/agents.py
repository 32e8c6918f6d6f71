"""Agent routes: a team's members, messages to them, and their threads."""

from typing import Annotated, ClassVar, Literal, Self

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agiraph.api.attachments import AttachmentRequest, Attachments, received
from agiraph.api.deps import After, ApiDep, Idempotent, Limit, PersonDep, SaidByDep
from agiraph.api.effort_choice import NO_EFFORT, EffortChange, chosen_effort
from agiraph.api.presenters import agent_view, message_view, thread_view, turn_views
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.thread_views import ThreadView, TurnView
from agiraph.api.views import AgentView, MessageView
from agiraph.domain.ids import AgentId, ThreadId
from agiraph.domain.messages import Draft
from agiraph.services.lifecycle import conversation, settings
from agiraph.services.mail import bus, inbox
from agiraph.services.members import roster
from agiraph.services.members.roster import EVERYONE
from agiraph.store import messages, teams, threads
from agiraph.store.messages import MESSAGES
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx

router: APIRouter = api_router("agents")

MOST_MENTIONS = 20


class MessageRequest(BaseModel):
    """A message from the person to an agent."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"message": "Also include pricing, please."}},
    )

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

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.message.strip() and not self.attachments:
            raise ValueError("is empty; write a message or attach a file")
        return self


class BroadcastRequest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"message": "We stop at noon."}}
    )

    message: str = Field(min_length=1, max_length=bus.TEXT_LIMIT)


class MarkReadRequest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"seq": 12}}
    )

    seq: int = Field(ge=0, le=2**62, description="The `seq` of the last message that was read.")


class AgentChanges(BaseModel):
    """What to change; what is left out stays as it is."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"effort": "high"}}
    )

    effort: EffortChange | None = Field(
        default=None, description="How much the model thinks first." + NO_EFFORT
    )
    model: str | None = Field(default=None, min_length=1, max_length=500)

    @model_validator(mode="after")
    def _changes_something(self) -> "AgentChanges":
        if self.effort is None and self.model is None:
            raise ValueError("set `effort` or `model`")
        return self


@router.get("/teams/{team}/agents", responses=documented(404))
async def list_agents(
    team: str,
    api: ApiDep,
    person: PersonDep,
    all: Annotated[bool, Query(description="Include agents that have left.")] = False,
) -> list[AgentView]:
    """List the members of a team, coordinator first."""

    def look(tx: Tx) -> list[AgentView]:
        members = roster.members(tx, teams.find(tx, team).id, all=all)
        return [agent_view(tx, member, person) for member in members]

    return await api.store.read(look)


@router.get("/agents/{agent}", responses=documented(404))
async def get_agent(agent: str, api: ApiDep, person: PersonDep) -> AgentView:
    """Return one agent with what it is doing now."""
    return await api.store.read(
        lambda tx: agent_view(tx, roster.member(tx, AGENTS.get(tx, agent)), person)
    )


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

    return await api.store.write(change)


@router.post("/agents/{agent}/send", status_code=202, responses=documented(404, 409))
async def send(
    agent: str,
    body: MessageRequest,
    person: PersonDep,
    said_by: SaidByDep,
    idempotently: Idempotent,
) -> MessageView:
    """Send a message to an agent, or to the agents that it mentions. It is stored when this
    returns; the reply comes later. With mentions, the first of the messages is returned."""

    def say(tx: Tx) -> MessageView:
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
        )
        # As it is stored: without the secrets in it.
        return message_view(tx, MESSAGES.get(tx, said[0].id))

    return await idempotently(say, status=202)  # pyright: ignore[reportReturnType]


@router.put("/agents/{agent}/read", status_code=204, responses=documented(404))
async def read_up_to(agent: str, body: MarkReadRequest, api: ApiDep, person: PersonDep) -> Response:
    """Mark what you have read of your conversation with this agent. The mark never moves back."""

    def read(tx: Tx) -> None:
        inbox.read_conversation(tx, AGENTS.get(tx, agent), person, body.seq)

    await api.store.write(read)
    return Response(status_code=204)


@router.post("/teams/{team}/broadcast", status_code=202, responses=documented(404, 409))
async def broadcast(
    team: str,
    body: BroadcastRequest,
    person: PersonDep,
    said_by: SaidByDep,
    idempotently: Idempotent,
) -> list[MessageView]:
    """Send a message to every member of the team."""

    def tell(tx: Tx) -> list[MessageView]:
        found = teams.find(tx, team)
        draft = Draft(
            recipient=EVERYONE, team_id=found.id, sender=person, text=body.message, label=said_by
        )
        sent = bus.broadcast(tx, draft)
        return [message_view(tx, MESSAGES.get(tx, message.id)) for message in sent]

    return await idempotently(tell, status=202)  # pyright: ignore[reportReturnType]


@router.get("/agents/{agent}/conversation", responses=documented(404))
async def get_conversation(
    agent: str,
    api: ApiDep,
    person: PersonDep,
    before: Annotated[str, Query(description="The first id of the next page.")] = "",
    limit: Limit = 100,
) -> list[MessageView]:
    """Return the messages between the person and this agent, oldest first: the newest page, or
    the page before an id. A message that the person wrote here and that went to the agents it
    mentions is included; the agent's threads are not."""

    def look(tx: Tx) -> list[MessageView]:
        found = AGENTS.get(tx, agent)
        said = messages.lately(
            tx, found.team_id, found.id, person, limit=limit, before=before, mentions=True
        )
        return [message_view(tx, message) for message in said]

    return await api.store.read(look)


@router.get("/agents/{agent}/threads", responses=documented(404))
async def list_threads(
    agent: str, api: ApiDep, after: After = "", limit: Limit = 100
) -> list[ThreadView]:
    """List an agent's threads (work, replies, reflections), oldest first."""

    def look(tx: Tx) -> list[ThreadView]:
        found = threads.of_agent(tx, AGENTS.get(tx, agent).id)
        known: list[str] = [t.id for t in found]
        start = known.index(after) + 1 if after in known else 0
        return [thread_view(t) for t in found[start : start + limit]]

    return await api.store.read(look)


@router.get("/threads/{thread}", responses=documented(404))
async def get_thread(
    thread: str,
    api: ApiDep,
    after: Annotated[
        int, Query(ge=0, le=2**40, description="The number of the last turn you have.")
    ] = 0,
    limit: Limit = 200,
) -> list[TurnView]:
    """Return the turns of a thread."""

    def look(tx: Tx) -> list[TurnView]:
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

    return await api.store.read(look)
