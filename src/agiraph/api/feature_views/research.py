"""Research views: a research job with its plan, its readers, its ledger and its sources."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.work import JobState

# The same as in the model of research, which this module must do without.
Depth = Literal["quick", "standard", "deep"]
Kind = Literal["fact", "comparison", "survey", "how-to", "watch"]
Phase = Literal["brief", "reading", "gaps", "writing", "support", "ended"]
SourceClass = Literal["primary", "reference", "press", "vendor", "forum", "unknown"]
Stance = Literal["supports", "contradicts", "context"]
Checked = Literal["exact", "near", "unchecked"]


class EvidenceView(View):
    """One entry of a ledger: a claim with the words of a page that show it."""

    id: str
    claim: str
    quote: str = Field(description="The page's own words; parts left out are shown as ` … `.")
    url: str
    title: str
    site: str
    published: str = Field(description="As the page says it; empty if it does not.")
    fetched_at: datetime
    source_class: SourceClass
    question: int = Field(description="The number of its sub-question; 0: an earlier job found it.")
    stance: Stance
    checked: Checked


class SubQuestionView(View):
    """One sub-question of the plan, with its reader."""

    number: int
    question: str
    answer: str = Field(description="What counts as an answer.")
    round: int = Field(description="0: of the brief; else the round of gaps that found it.")
    node_id: str | None
    state: JobState
    evidence: int = Field(description="Entries of the ledger that its reader has noted.")


class ReadPageView(View):
    """A page that the job has read."""

    url: str
    title: str
    site: str
    source_class: SourceClass
    evidence: int


class ResearchSourceView(View):
    """A numbered source of the report."""

    number: int
    title: str
    site: str
    url: str
    published: str
    read: str
    source_class: SourceClass
    is_confirmed: bool = Field(description="Whether an independent source says the same.")
    is_checked: bool = Field(description="Whether its quotations were found on the page.")
    evidence: list[str]


class CitationView(View):
    """One mark `[1]` of the report."""

    number: int
    evidence: list[str]
    is_confirmed: bool | None = Field(
        description="Whether an independent source shows the claim before it; null in old reports."
    )


class ResearchView(View):
    """A research job: while it runs, how far it is; afterwards, what its report is made of."""

    node_id: str
    team_id: str
    title: str
    question: str
    asked_of: str | None = Field(description="The agent that answers questions about the report.")
    state: JobState
    depth: Depth | None = Field(description="Null until the brief has chosen one.")
    kind: Kind | None
    language: str
    phase: Phase
    round: int
    sub_questions: list[SubQuestionView]
    assumptions: list[str]
    searches: int
    searches_limit: int
    pages: list[ReadPageView]
    pages_limit: int
    usd: float
    usd_limit: float | None
    engine: str = Field(
        description="The search engines that it has used, before its first search the one that it "
        "began with; empty before the brief."
    )
    evidence: list[EvidenceView]
    sources: list[ResearchSourceView] = Field(description="In the order of the report's numbers.")
    citations: list[CitationView] = Field(
        description="The marks of the report in the order of its text."
    )
    missing: list[str] = Field(description="What could not be found out.")
    struck: int = Field(description="Sentences that were struck because nothing shows them.")
    stopped: str = Field(description="Why it ended early; empty if it did not.")
    continues: str | None = Field(description="The job whose ledger it goes on from.")
    standing: str | None = Field(description="The trigger that asks it again and again.")
    created_at: datetime
    ended_at: datetime | None
