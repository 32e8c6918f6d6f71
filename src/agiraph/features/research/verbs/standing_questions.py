"""Standing questions: starts a research job each time a trigger asks its question again.

The evidence of such a job is compared with that of earlier jobs of the same trigger, so that the
report holds only what is new.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import StopReason, WorkNode
from agiraph.core.services.members.roster import Hirer
from agiraph.core.services.triggers import actions
from agiraph.core.services.triggers.actions import Action
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import DEPTHS, EvidenceRow, ResearchJob
from agiraph.features.research.model.page_quotes import QuoteFound, find_quote, normal
from agiraph.features.research.model.report_check import plain, without_spans
from agiraph.features.research.model.report_words import words_of
from agiraph.features.research.model.sentences import units
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.verbs import starting
from agiraph.features.research.verbs.ledger import address_of
from agiraph.features.research.verbs.starting import RESEARCHER

NOTHING_NEW = "Nothing is new since {date}: {pages} read again or for the first time."


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The new findings of a job whose question was asked before."""

    rows: tuple[EvidenceRow, ...]
    since: datetime
    """When the last report was delivered."""


class _Action:
    """A trigger that asks a question again."""

    guidance = '{"type": "research", "question": …}: a report on what is new about it'

    def check(self, payload: dict[str, Any]) -> None:
        actions.text(payload.get("question", ""), "question")
        depth = payload.get("depth")
        if depth is not None and depth not in DEPTHS:
            raise Refused(f"action: 'depth' is one of {', '.join(DEPTHS)}, not {depth!r}.")

    def complete(self, payload: dict[str, Any], known: Mapping[str, Specialist]) -> dict[str, Any]:
        model = known[RESEARCHER].model if RESEARCHER in known else ""
        return {**payload, "model": model} if model else payload

    def start(self, tx: Tx, agent: Agent, trigger: Trigger) -> WorkNode:
        """Start the research of a trigger. It continues the ledger of the trigger's last job."""
        last = research.last_standing(tx, trigger.id)
        by, model = trigger.made_by, str(trigger.payload.get("model", ""))
        # The specialists' files cannot be read here: the trigger keeps its researcher's model.
        known = Specialist(name=RESEARCHER, description="", prompt="", model=model)
        return starting.start(
            tx,
            Hirer(agent, ThreadId(""), {RESEARCHER: known}, str),
            str(trigger.payload["question"]),
            depth=trigger.payload.get("depth"),
            person_id=by if is_person(by) else None,  # pyright: ignore[reportArgumentType]
            label=trigger.label,
            earlier=None if last is None else NODES.get(tx, last.id),
            standing=trigger,
        )


def news(tx: Tx, job: ResearchJob) -> News | None:
    """Return what a job has found that is new; None if its question was not asked before.

    It is compared with all earlier jobs of the trigger, however many there are.
    """
    if job.standing is None or job.continues is None:
        return None
    own = [row for row in evidence.of_job(tx, job.id) if row.job_id == job.id]
    pages = {
        url: research.earlier_texts(tx, job, address_of(url))
        for url in dict.fromkeys(row.url for row in own)
    }
    return News(
        rows=tuple(new_rows(own, evidence.earlier(tx, job), pages)),
        since=_last_report(tx, research.earlier_standing(tx, job))
        or NODES.get(tx, job.continues).created_at,
    )


def _last_report(tx: Tx, job_ids: list[NodeId]) -> datetime | None:
    """Return when the newest of these jobs that delivered a report has ended; None if none did."""
    for job_id in reversed(job_ids):
        node = NODES.get(tx, job_id)
        if not is_silent(node):
            return node.ended_at or node.created_at
    return None


def is_silent(node: WorkNode) -> bool:
    """Whether a job ended without a report, because there was nothing new."""
    return node.stop_reason is StopReason.NOTHING_TO_DO


def has_nothing_new(tx: Tx, job: ResearchJob) -> str:
    """Return why no report is due: the question was asked before, pages were read, and nothing on
    them is new. Empty if a report is due: also if a limit or a failure kept the job from reading.
    """
    pages = research.count_pages(tx, job.id)
    if job.stopped or not pages:
        return ""
    found = news(tx, job)
    if found is None or found.rows:
        return ""
    return NOTHING_NEW.format(
        date=f"{found.since:%Y-%m-%d}", pages=counted(pages, "page was", "pages were")
    )


ACTION: Action = _Action()


MOST_LISTED = 20
"""Quotations that the list of what is new shows."""


def new_rows(
    own: Sequence[EvidenceRow],
    earlier: Sequence[EvidenceRow],
    pages: Mapping[str, Sequence[str]],
) -> list[EvidenceRow]:
    """Return the entries of a job whose words are new.

    `earlier` are the entries of the jobs before it, and `pages` the texts in which those jobs have
    read each address.
    """
    known = [normal(row.quote) for row in earlier]
    hashes = {row.page_hash for row in earlier}
    # By page: the normal form of a page is kept for the next quotation on it.
    fresh = [row for row in sorted(own, key=lambda row: row.url) if row.page_hash not in hashes]
    fresh = [row for row in fresh if not any(normal(row.quote) in said for said in known)]
    found = {row.id for row in fresh if not _stood_there(row, pages.get(row.url, ()))}
    return [row for row in own if row.id in found]


def _stood_there(row: EvidenceRow, texts: Sequence[str]) -> bool:
    found = (find_quote(row.quote, text, wants_nearest=False) for text in texts)
    return any(isinstance(each, QuoteFound) for each in found)


def only_new(text: str, new_ids: Collection[str]) -> str:
    """Return a report without the sentences that cite only what was known before."""
    old = [
        (unit.start, unit.end)
        for unit in units(text)
        if unit.ids and not any(id in new_ids for id in unit.ids)
    ]
    return without_spans(text, old)


def difference(fresh: Sequence[EvidenceRow], *, since: datetime, language: str) -> str:
    """Return the section with the words that are new since the last report, without the links and
    marks that a page puts into them."""
    words = words_of(language)
    heading = words.new_since.format(date=f"{since:%Y-%m-%d}")
    lines = [f"- “{plain(row.quote)}” [{row.id}]" for row in fresh[:MOST_LISTED]]
    if len(fresh) > MOST_LISTED:
        lines.append(f"- … (+{len(fresh) - MOST_LISTED})")
    return f"## {heading}\n\n" + "\n".join(lines) + "\n"
