"""Frames: the messages on the WebSockets and the events in them, with their JSON schemas."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from agiraph.domain.events import Event, EventType
from agiraph.domain.events.registry import EVENT_CLASSES
from agiraph.domain.work import Lane


class EventBase(BaseModel):
    """The fields that every event has."""

    # Pydantic passes the setting on to the event's class, whose docstrings describe its fields.
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    team_id: str
    seq: int = Field(ge=1)
    """The event's number in its team: without gaps, in commit order."""
    at: datetime


def _event_model(type: EventType) -> type[EventBase]:
    data = EVENT_CLASSES[type]
    fields: dict[str, Any] = {"type": (Literal[type], ...), "data": (data, ...)}
    doc = f"`{type}`: {data.__doc__}"
    return create_model(f"{data.__name__}Event", __base__=EventBase, __doc__=doc, **fields)


EVENT_MODELS: dict[EventType, type[EventBase]] = {
    type: _event_model(type) for type in EVENT_CLASSES
}
if TYPE_CHECKING:
    EventView = EventBase  # type checkers cannot follow a union that is made of a table
else:
    EventView = Annotated[Union[tuple(EVENT_MODELS.values())], Field(discriminator="type")]  # noqa: UP007
    """Any event; `type` says which."""


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as the JSON object that clients get."""
    return {
        "team_id": event.team_id,
        "seq": event.seq,
        "type": event.type,
        "at": event.at.isoformat(),
        "data": event.data,
    }


def mismatches(event: Event) -> list[str]:
    """Return how an event differs from the schema of its type; an empty list if it fits."""
    model = EVENT_MODELS.get(event.type)
    if model is None:
        return [f"{event.type} has no registered class: decorate its class with `@event`"]
    cls = EVENT_CLASSES[event.type]
    found = [
        f"{event.type}: `{key}` is not a field of {cls.__name__}"
        for key in event.data
        if key not in (*cls.required_fields, *cls.optional_fields)
    ]
    try:
        model.model_validate(event_json(event))
    except ValidationError as error:
        found.append(f"{event.type}: {error}")
    return found


class _Frame(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class HelloFrame(_Frame):
    """The first frame of every connection."""

    op: Literal["hello"]
    epoch: str
    """The id of the database. If it differs from the one before, your event numbers are void."""
    build: str
    heads: dict[str, int]
    """The number of the newest event of each team."""


class EventFrame(_Frame):
    """An event. The events of one team are sent in order and without gaps."""

    op: Literal["event"]
    event: EventView


class _ReplyFrame(_Frame):
    team_id: str
    agent_id: str
    node_id: str
    thread_id: str
    lane: Lane
    text: str


class DeltaFrame(_ReplyFrame):
    """The next characters of a reply that a model is writing. Sent live only, never stored."""

    op: Literal["delta"]
    offset: int
    """How many characters of the reply precede these."""


class DraftFrame(_ReplyFrame):
    """An unfinished reply up to now, sent to a client that has just connected."""

    op: Literal["draft"]


class ResyncFrame(_Frame):
    """You missed too many events of this team: reload its data and continue from `head`."""

    op: Literal["resync"]
    team_id: str
    head: int


class PingFrame(_Frame):
    """A keep-alive without content."""

    op: Literal["ping"]


class SubscribeFrame(_Frame):
    """The first frame that a client sends on `/api/events`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"op": "subscribe", "cursors": {"team_1m7e": 41}}}
    )

    op: Literal["subscribe"]
    cursors: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int],
        description="By team, the number of the last event you have.",
    )


Frame = Annotated[
    HelloFrame | EventFrame | DeltaFrame | DraftFrame | ResyncFrame | PingFrame,
    Field(discriminator="op"),
]
"""Any frame that the server sends."""


def schemas(ref_template: str) -> dict[str, Any]:
    """Return the JSON schemas of the frames of both directions and of their parts, by name."""
    found: dict[str, Any] = {}
    for name, kind in (("Frame", Frame), ("Event", EventView), ("SubscribeFrame", SubscribeFrame)):
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, kind))
        made = adapter.json_schema(ref_template=ref_template, mode="serialization")
        found |= made.pop("$defs", {})
        found[name] = made
    return found
