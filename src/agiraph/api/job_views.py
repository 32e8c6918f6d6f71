"""Job views: work with its progress, as the API returns it."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import WORKED_SECONDS, View
from agiraph.domain.work import JobState


class JobView(View):
    """Work as a card shows it: who is on it, how far it is, and what it did last."""

    node_id: str
    parent_id: str | None
    title: str
    worker: str
    state: JobState
    position: int | None = Field(description="Its place in its worker's queue, from 1.")
    is_research: bool
    used: dict[str, int] = Field(description="Calls made of each tool that its budget limits.")
    limits: dict[str, int] = Field(description="The limit on calls of each such tool.")
    tasks: int = Field(description="Tasks that it has given away.")
    tasks_done: int
    progress: str = Field(description="Why it waits, else its last checkpoint.")
    started_at: datetime | None
    ended_at: datetime | None
    worked_seconds: float = Field(description=WORKED_SECONDS)
    running_since: datetime | None = Field(description="When its present run began, if it runs.")
    sources: list[str] = Field(
        description="Who wrote some of these words, if not the team. Show links in them as text."
    )
