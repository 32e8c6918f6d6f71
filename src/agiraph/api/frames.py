"""Frames: what goes over the WebSockets, and the events in them, described for clients."""

from datetime import datetime
from typing import Annotated, Any, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from agiraph.api.happenings import DATA
from agiraph.domain.events import EventType
from agiraph.domain.work import Lane


class Happened(BaseModel):
    """Something that happened in a team."""

    team_id: str
    seq: int = Field(ge=1, description="Its number in its team: dense, in the order of commits.")
    at: datetime


def _event_model(type: EventType) -> type[Happened]:
    name = "".join(word.capitalize() for word in type.split(".")) + "Event"
    fields: dict[str, Any] = {"type": (Literal[type], ...), "data": (DATA[type], ...)}
    return create_model(name, __base__=Happened, __doc__=f"`{type}`", **fields)


EVENTS: dict[EventType, type[Happened]] = {type: _event_model(type) for type in DATA}
EventView = Annotated[Union[tuple(EVENTS.values())], Field(discriminator="type")]  # noqa: UP007 # pyright: ignore
"""Any event; `type` says which."""


class _Frame(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Hello(_Frame):
    """The first frame of every line."""

    op: Literal["hello"]
    epoch: str
    """Which database this is. If it is another than before, your numbers mean nothing here."""
    build: str
    heads: dict[str, int]
    """The number of the newest event of each team."""


class EventFrame(_Frame):
    """Something happened. Numbers of one team come in order and without a gap."""

    op: Literal["event"]
    event: EventView  # pyright: ignore[reportInvalidTypeForm]


class _OfAReply(_Frame):
    team_id: str
    agent_id: str
    node_id: str
    thread_id: str
    lane: Lane
    text: str


class Delta(_OfAReply):
    """A few more words of a reply that is being written. Live only, and never kept."""

    op: Literal["delta"]
    offset: int
    """How many characters of the reply came before these."""


class DraftFrame(_OfAReply):
    """A reply under way as far as it is written, for whoever has just come."""

    op: Literal["draft"]


class Resync(_Frame):
    """You missed too much of this team: load what you show anew, and go on from `head`."""

    op: Literal["resync"]
    team_id: str
    head: int


class Ping(_Frame):
    """The line lives; nothing else."""

    op: Literal["ping"]


class Subscribe(_Frame):
    """What a client says first on `/api/events`."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"op": "subscribe", "cursors": {"team_1m7e": 41}}}
    )

    op: Literal["subscribe"]
    cursors: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int], description="The last number you have, by team."
    )


Frame = Annotated[
    Hello | EventFrame | Delta | DraftFrame | Resync | Ping, Field(discriminator="op")
]
"""Whatever the server says on a line."""


def schemas(ref_template: str) -> dict[str, Any]:
    """The JSON schemas of both directions, and of all they are made of, by name."""
    found: dict[str, Any] = {}
    for name, kind in (("Frame", Frame), ("Event", EventView), ("Subscribe", Subscribe)):
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, kind))
        made = adapter.json_schema(ref_template=ref_template, mode="serialization")
        found |= made.pop("$defs", {})
        found[name] = made
    return found
