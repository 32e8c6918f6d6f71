"""Research presenters: the rows of a research job as the API returns them."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agiraph.api.research_views import (
    CitationView,
    EvidenceView,
    ReadPageView,
    ResearchSourceView,
    ResearchView,
    SubQuestionView,
)
from agiraph.domain import sources
from agiraph.domain.evidence import EvidenceRow
from agiraph.domain.ids import NodeId
from agiraph.domain.research import ResearchJob
from agiraph.domain.work import WorkNode
from agiraph.services.board import jobs, texts
from agiraph.services.research import state
from agiraph.services.research.state import ResearchState
from agiraph.store import research
from agiraph.store.tx import Tx


def research_view(tx: Tx, node_id: NodeId) -> ResearchView:
    """Return a job without the numbered sources of its report, which are in a published file."""
    found = state.state_of(tx, node_id)
    job, node, brief = found.job, found.node, found.job.brief
    return ResearchView(
        node_id=node.id,
        team_id=node.team_id,
        title=texts.subject_of(node),
        question=job.question,
        asked_of=node.asked_of,
        state=jobs.state_of(node),
        depth=job.depth,
        kind=None if brief is None else brief.kind,
        language="" if brief is None else brief.language,
        phase=job.phase,
        round=job.round,
        sub_questions=_sub_questions(found),
        assumptions=[] if brief is None else list(brief.assumptions),
        searches=found.used.searches,
        searches_limit=found.limits.searches,
        pages=_pages(tx, job, found.ledger),
        pages_limit=found.limits.pages,
        usd=found.usd,
        usd_limit=node.budget.usd,
        engine=state.engines(tx, job),
        evidence=[evidence_view(row) for row in found.ledger],
        sources=[],
        citations=[],
        missing=list(job.missing),
        struck=len(job.struck),
        stopped=job.stopped,
        continues=job.continues,
        standing=job.standing,
        created_at=job.created_at,
        ended_at=node.ended_at,
    )


def evidence_view(row: EvidenceRow) -> EvidenceView:
    return EvidenceView(
        id=row.id,
        claim=row.claim,
        quote=row.quote,
        url=row.url,
        title=row.title,
        site=_site(row.url),
        published=row.published,
        fetched_at=row.fetched_at,
        source_class=row.source_class,
        question=row.question,
        stance=row.stance,
        checked=row.checked,
    )


def _sub_questions(found: ResearchState) -> list[SubQuestionView]:
    readers: Mapping[str, WorkNode] = {node.id: node for node in found.readers}
    noted = Counter(row.question for row in found.ledger if row.job_id == found.job.id)
    return [
        SubQuestionView(
            number=each.number,
            question=each.question,
            answer=each.answer,
            round=each.round,
            node_id=each.node_id,
            state=jobs.state_of(readers[each.node_id]) if each.node_id in readers else "queued",
            evidence=noted[each.number],
        )
        for each in found.job.readings
    ]


def _pages(tx: Tx, job: ResearchJob, ledger: list[EvidenceRow]) -> list[ReadPageView]:
    subjects = () if job.brief is None else job.brief.subjects
    noted = Counter(row.url for row in ledger)
    return [
        ReadPageView(
            url=url,
            title=title,
            site=_site(url),
            source_class=sources.classify(url, subjects=subjects),
            evidence=noted[url],
        )
        for url, title in research.read_pages(tx, job.id)
    ]


def with_sources(view: ResearchView, published: str) -> ResearchView:
    """Return the view with the sources that the published file `sources.json` lists; unchanged if
    the file is broken."""
    try:
        made: Any = json.loads(published)
        listed = [_source(each) for each in made["sources"]]
        marks = [CitationView.model_validate(each) for each in made["citations"]]
    except (ValueError, KeyError, TypeError):
        return view
    return view.model_copy(update={"sources": listed, "citations": marks})


def _source(given: dict[str, Any]) -> ResearchSourceView:
    return ResearchSourceView.model_validate(
        {
            **given,
            "source_class": given["class"],
            "is_confirmed": given["confirmed"],
            "is_checked": given["checked"],
        }
    )


def _site(url: str) -> str:
    return sources.host_of(url).removeprefix("www.")
