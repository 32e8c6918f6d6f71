"""Frames: what goes over the WebSockets, described for clients."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agiraph.domain.events import EventType


class EventView(BaseModel):
    """Something that happened in a team."""

    team_id: str
    seq: int
    type: EventType
    at: datetime
    data: dict[str, Any]
