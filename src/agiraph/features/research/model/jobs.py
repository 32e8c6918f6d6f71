"""Research: a job with its brief, its plan, its phases, the limits of each depth, and its evidence.

The evidence of a job is its ledger: each claim with the words of a page that show it. A report
cites entries of the ledger by their ids and nothing else, so each of its statements can be traced
to words that stood on a page when the job read it.
"""

from datetime import datetime
from typing import Literal

from agiraph.core.domain.ids import MessageId, NodeId, TeamId, TriggerId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value

Depth = Literal["quick", "standard", "deep"]
Kind = Literal["fact", "comparison", "survey", "how-to", "watch"]
Part = Literal["job", "reader", "gaps", "writing", "support"]
"""What a node does for a research job. It is the job itself, reads pages for one sub-question,
looks for gaps in the ledger, writes the report, or checks whether the quotations support the
report."""
Phase = Literal["brief", "reading", "gaps", "writing", "support", "ended"]
SupportCheck = Literal["none", "key findings", "all"]
"""Which sentences of a report a model compares with their quotations."""


@value
class Limits:
    """What a research job of one depth may use."""

    sub_questions: int
    readers: int
    """How many readers run at the same time."""
    rounds: int
    """How many times a model looks for gaps in the ledger and readers are started to fill them."""
    searches: int
    pages: int
    turns: int
    """The turns that one reader may take."""
    seconds: float
    usd: float
    tokens: int
    """The token limit, which bounds a job whose model has no known price."""
    support: SupportCheck


DEPTHS: dict[Depth, Limits] = {
    "quick": Limits(
        sub_questions=1,
        readers=1,
        rounds=0,
        searches=4,
        pages=6,
        turns=12,
        seconds=300.0,
        usd=0.30,
        tokens=600_000,
        support="none",
    ),
    "standard": Limits(
        sub_questions=4,
        readers=3,
        rounds=1,
        searches=16,
        pages=24,
        turns=16,
        seconds=900.0,
        usd=2.0,
        tokens=3_000_000,
        support="key findings",
    ),
    "deep": Limits(
        sub_questions=7,
        readers=5,
        rounds=2,
        searches=48,
        pages=80,
        turns=24,
        seconds=2700.0,
        usd=8.0,
        tokens=12_000_000,
        support="all",
    ),
}
DEPTH_OF_KIND: dict[Kind, Depth] = {
    "fact": "quick",
    "comparison": "standard",
    "survey": "standard",
    "how-to": "standard",
    "watch": "standard",
}
"""The depth of a job for which none was chosen; deep research must be asked for."""


@value
class SubQuestion:
    question: str
    answer: str = ""
    """What counts as an answer to it."""


@value
class Brief:
    """What a job is to find out: the plan that its first model call makes of the question."""

    question: str
    """In the language of the person who asks."""
    language: str
    kind: Kind
    sub_questions: tuple[SubQuestion, ...]
    freshness: str = ""
    """How recent the sources must be."""
    wanted: str = ""
    unwanted: str = ""
    assumptions: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    """Names that the question is about: the site of one of them is a primary source."""
    builds_on: str = ""
    """The id of an earlier job of the team whose evidence the report also needs."""
    ask: str = ""
    """A question to the person, if two readings of theirs would lead to different reports. The job
    begins with the safer reading before there is an answer."""


@value
class Reading:
    """One sub-question of the plan, and the reader that has it."""

    number: int
    """From 1: entries of the ledger name it."""
    question: str
    answer: str = ""
    round: int = 0
    """0: the sub-question is from the brief; else the round of gaps that added it."""
    node_id: NodeId | None = None
    """Its reader; None before one was started."""
    label: Label = CLEAN
    """The label of the sub-question's text: a later round takes its questions from pages."""


@value
class ResearchJob:
    """A research job. Its id is that of its node."""

    id: NodeId
    team_id: TeamId
    question: str
    """As it was asked."""
    depth: Depth | None
    """None until the brief has chosen one."""
    asks: bool
    """Whether it came from a conversation, so that it may ask the person once."""
    continues: NodeId | None = None
    """The job whose ledger it goes on from."""
    standing: TriggerId | None = None
    """The trigger that asks this question again and again, if one does."""
    searches: int | None = None
    """Searches and pages that the request named; None: those of its depth."""
    pages: int | None = None
    brief: Brief | None = None
    phase: Phase = "brief"
    round: int = 0
    """How many times the job has looked for gaps."""
    rounds: int = 0
    """How many times the job may look for gaps. A person's message, or a budget that is raised
    after the job's end, adds to it."""
    readings: tuple[Reading, ...] = ()
    heard: int = 0
    """How many messages of persons the last look for gaps, or the writing of the report, has
    used."""
    question_id: MessageId | None = None
    """The question that it asked the person."""
    part_id: NodeId | None = None
    """The node of the part that looks for gaps, writes or checks at the moment."""
    engine: str = ""
    """The search engine that it began with."""
    draft: str = ""
    """The report as it was last checked, with the ids of its evidence."""
    struck: tuple[str, ...] = ()
    """Sentences that were taken out of the report because their evidence does not hold."""
    missing: tuple[str, ...] = ()
    """What could not be found out."""
    stopped: str = ""
    """Why it ended early; empty if it did not."""
    created_at: datetime

    @property
    def limits(self) -> Limits:
        return DEPTHS[self.depth or "standard"]


@value
class ResearchPage:
    """A page as a job has read it."""

    id: str
    """The job's id, and a hash of address and text: the same page read again is the same row."""
    team_id: TeamId
    job_id: NodeId
    node_id: NodeId
    url: str
    address: str
    """The URL in the form in which two addresses are compared."""
    page_hash: str
    title: str
    published: str
    text: str
    fetched_at: datetime


SourceClass = Literal["primary", "reference", "press", "vendor", "forum", "unknown"]
"""What kind of site a page belongs to, the most reliable kind first."""

Stance = Literal["supports", "contradicts", "context"]
"""What a quotation says about its claim."""

Checked = Literal["exact", "near", "unchecked"]
"""How a quotation was found: on the page; on the page but for a few characters at its ends, which
earlier releases cut off; or not at all, because the page has no text (the scan of a document)."""

LONGEST_CLAIM = 300
LONGEST_QUOTE = 600
SHORTEST_QUOTE = 12
"""The fewest characters of a quotation; a shorter one stands on many pages and proves nothing."""


@value
class EvidenceRow:
    """One entry of the ledger."""

    id: str
    """`e1`, `e2` …: its number within the job. A report cites it as `[e12]`. The table has the
    job's id before it."""
    team_id: TeamId
    job_id: NodeId
    number: int
    node_id: NodeId
    """The reader that noted it."""
    call_id: str
    claim: str
    """What the reader concludes, in the reader's words."""
    quote: str
    """The words of the page, as they stand there. Parts left out are shown as ` … `."""
    url: str
    page_hash: str
    """The hash of the page's text when the job read it."""
    place: int
    """Where the quotation begins in that text."""
    title: str
    published: str
    """When the page was published, as it says itself; empty if it does not say."""
    fetched_at: datetime
    source_class: SourceClass
    question: int
    """The number of the sub-question that it answers, from 1; 0: none of this job's."""
    stance: Stance
    label: Label
    checked: Checked
    created_at: datetime
