"""Search views: what a search over all teams has found, as the API shows it."""

from datetime import datetime

from pydantic import Field

from agiraph.api.view import View
from agiraph.domain.found import FoundKind


class FoundView(View):
    """One thing that a search over all teams has found."""

    kind: FoundKind
    team_id: str
    team_name: str
    ref: str = Field(
        description="The id of a team, agent, node, message, insight or thread; a path, or a URL. "
        "For an answer, the id of its question."
    )
    title: str
    preview: str = Field(description="The part of its text around the first of the words.")
    agent_id: str | None
    node_id: str | None
    thread_id: str | None
    seq: int | None = Field(description="For a step, the number of its turn in the thread.")
    sources: list[str] = Field(description="Who wrote its words, if not the team.")
    at: datetime
