"""Evidence: what a research job found out, each claim with the words of a page that show it.

The evidence of a job is its ledger. A report cites entries of the ledger by their ids and nothing
else, so each of its statements can be traced to words that stood on a page when the job read it.
"""

from datetime import datetime
from typing import Literal

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.value import value

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
