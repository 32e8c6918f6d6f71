"""Knowledge views: what agents know and nobody has confirmed, and what a search in it finds."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.text.passages import PassageKind


class UnconfirmedView(View):
    """Knowledge that no person has confirmed."""

    id: str
    agent_id: str
    kind: str = Field(description="`memory`, `insight`, or `note` with the path of its file.")
    text: str
    status: KnowledgeStatus = Field(
        description="`unverified`: agents find and use it, always marked. `pending`: nobody uses "
        "it until a person confirms it."
    )
    sources: list[str] = Field(
        description="Who wrote its words, if not the team: search, page:HOST, program:NAME, …"
    )
    learned_from: list[str] = Field(
        description="The ids of the threads and messages it was learned from."
    )
    created_at: datetime


class PageTextView(View):
    """The text of a web page that an agent has read."""

    url: str
    title: str
    text: str = Field(description="As it was read: Markdown, at most 120,000 characters.")
    sources: list[str] = Field(description="Who wrote its words: page:HOST.")
    read_at: datetime


class SearchHitView(View):
    kind: PassageKind
    ref: str = Field(description="The source: a path, a URL, or the id of an insight or node.")
    title: str
    text: str
    sources: list[str] = Field(
        description="Who wrote its words, if not the team: search, page:HOST, program:NAME, …"
    )
    created_at: datetime
