"""Evidence rows: entries of a ledger for tests."""

from datetime import UTC, datetime
from hashlib import sha256

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.provenance.labels import of_page
from agiraph.features.research.model.jobs import EvidenceRow, SourceClass, Stance


def row(
    id: str,
    quote: str,
    *,
    url: str = "https://one.example/page",
    title: str = "A page",
    published: str = "",
    source_class: SourceClass = "unknown",
    stance: Stance = "supports",
    claim: str = "A claim",
) -> EvidenceRow:
    return EvidenceRow(
        id=id,
        team_id=TeamId("team_1"),
        job_id=NodeId("node_1"),
        number=int(id[1:]),
        node_id=NodeId("node_2"),
        call_id="call_1",
        claim=claim,
        quote=quote,
        url=url,
        page_hash=sha256(url.encode()).hexdigest(),
        place=0,
        title=title,
        published=published,
        fetched_at=datetime(2026, 11, 17, 12, tzinfo=UTC),
        source_class=source_class,
        question=1,
        stance=stance,
        label=of_page(url),
        checked="exact",
        created_at=datetime(2026, 11, 17, 12, tzinfo=UTC),
    )
