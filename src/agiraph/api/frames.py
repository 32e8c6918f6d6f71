"""Frames: the messages on the WebSockets."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.domain.events import Event
from agiraph.domain.work import Lane


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as the JSON object that clients get."""
    return {
        "team_id": event.team_id,
        "seq": event.seq,
        "type": event.type,
        "at": event.at.isoformat(),
        "data": event.data,
    }


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


class SubscribeFrame(FrameBase):
    """The first frame that a client sends on `/api/events`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={"example": {"op": "subscribe", "cursors": {"team_1m7e": 41}}}
    )

    op: Literal["subscribe"]
    cursors: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int],
        description="By team, the number of the last event you have.",
    )
