"""Event models: the schema of every event and frame, for the API's description.

Pydantic takes a while to build these models. A server never needs them to send an event,
so only the description of the API and the test kit import this module, when they need it.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from agiraph.api.live import SubscribeFrame, event_json
from agiraph.core.domain.events import (
    REGISTERED,
    Event,
    EventType,
    TeamEvent,
    knowledge,
    mail,
    team,
    triggers,
    work,
)
from agiraph.core.domain.work import Lane

MODULES = (team, work, mail, triggers, knowledge)
"""The modules with event classes; importing them registers the classes."""

# In the order of `EventType`, not of imports: the API's schema must not depend on who imported
# which module first. A type without a class raises KeyError here.
EVENT_CLASSES: dict[EventType, type[TeamEvent]] = {
    type: REGISTERED[type] for type in get_args(EventType)
}


class EventBase(BaseModel):
    """The fields that every event has."""

    team_id: str
    # Described by hand: to find a docstring, Pydantic searches the whole stack for each model.
    seq: int = Field(
        ge=1, description="The event's number in its team: without gaps, in commit order."
    )
    at: datetime


def _event_model(type: EventType) -> type[EventBase]:
    data = EVENT_CLASSES[type]
    literal: Any = Literal[type]  # pyrefly: ignore[not-a-type]
    fields: dict[str, Any] = {"type": (literal, ...), "data": (data, ...)}
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


class FrameBase(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class HelloFrame(FrameBase):
    """The first frame of every connection."""

    op: Literal["hello"]
    epoch: str
    """The id of the database. If it differs from the one before, your event numbers are void."""
    build: str
    heads: dict[str, int]
    """The number of the newest event of each team."""


class _ReplyFrame(FrameBase):
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


class ResyncFrame(FrameBase):
    """You missed too many events of this team: reload its data and continue from `head`."""

    op: Literal["resync"]
    team_id: str
    head: int


class PingFrame(FrameBase):
    """A keep-alive without content."""

    op: Literal["ping"]


class EventFrame(FrameBase):
    """An event. The events of one team are sent in order and without gaps."""

    op: Literal["event"]
    event: EventView


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
