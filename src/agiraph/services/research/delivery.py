"""Delivery: what a research job delivers: a report whose statements hold, to inbox and chat."""

import re
from dataclasses import dataclass

from agiraph.domain import report_check, research_report, sources
from agiraph.domain import standing as question
from agiraph.domain.chat import Lease
from agiraph.domain.evidence import EvidenceRow
from agiraph.domain.fence import one_line
from agiraph.domain.ids import NodeId
from agiraph.domain.labels import Label, join
from agiraph.domain.messages import MessageKind
from agiraph.domain.research import Brief, ResearchJob
from agiraph.domain.research_report import Counts, Report
from agiraph.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.services.board import labels, planning, texts
from agiraph.services.mail import bus
from agiraph.services.research import reading_budget, standing, state
from agiraph.services.research.answers import plain_brief
from agiraph.services.research.standing import News
from agiraph.store import evidence, passages, research, spend, threads
from agiraph.store.nodes import NODES
from agiraph.store.research import JOBS
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx

DELIVERED = "The report was delivered."
SUMMARY = 1200
"""Characters of a report that go into the conversation; the inbox holds all of it."""
NOTHING = "No evidence was found, so the report states nothing."
NO_NEWS = "Nothing new was found since the last report."
NOT_WRITTEN = (
    "No report could be written. This is what was noted, each entry with the source that shows it."
)
STOPPED = "The research stopped early: {reason}."
_SECTION = re.compile(
    r"^#+\s*summary\s*$(.*?)(?=^#+\s|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_HEADINGS = re.compile(r"^#+[ \t].*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that a report is made from."""

    job: ResearchJob
    rows: tuple[EvidenceRow, ...]
    pages: dict[str, str]
    """The texts of the pages by their hashes."""
    counts: Counts
    stopped: StopReason | None
    """The limit that ended the job early."""
    unread: tuple[str, ...]
    """Sub-questions without evidence."""
    label: Label
    """The sources of all that the parts of the job have read."""
    news: News | None = None
    """What is new, if the question was asked before."""


def gather(tx: Tx, job_id: NodeId) -> Findings:
    """Return what a job has found out so far."""
    job, node = JOBS.get(tx, job_id), NODES.get(tx, job_id)
    rows = tuple(evidence.of_job(tx, job_id))
    answered = {row.question for row in rows}
    parts = [part.id for part in reading_budget.parts(tx, job_id)]
    stopped = StopReason(job.stopped) if job.stopped else None
    return Findings(
        job=job,
        rows=rows,
        pages=research.texts(tx, research.chain(tx, job_id)),
        counts=_counts(tx, node, job, stopped),
        stopped=stopped,
        unread=tuple(each.question for each in job.readings if each.number not in answered),
        label=labels.of_nodes(tx, parts) | join(row.label for row in rows),
        news=standing.news(tx, job),
    )


def _counts(tx: Tx, node: WorkNode, job: ResearchJob, stopped: StopReason | None) -> Counts:
    used = state.used(tx, node)
    readers = reading_budget.readers(tx, job.id)
    is_priced = any(row.usd for part in [node, *readers] for row in spend.of_node(tx, part.id))
    return Counts(
        depth=job.depth or "standard",
        searches=used.searches,
        pages=used.pages,
        readers=len(readers),
        usd=spend.total(tx, node.id).usd if is_priced else None,
        engine=job.engine,
        stopped="" if stopped is None else STOPPED.format(reason=stopped.words),
    )


def compose(found: Findings) -> Report:
    """Return the report with its files. Whatever a model wrote, only what its evidence shows is in
    it: everything is compared with the ledger once more."""
    job, rows = found.job, found.rows
    brief = job.brief or plain_brief(job.question)
    text, struck = job.draft, list(job.struck)
    if not text.strip():
        text, struck = _plain_report(found, brief), []
    text, more = report_check.enforce(text, rows, question=job.question)
    if not rows:
        text = NOTHING
    if found.news is not None:
        text = _only_news(text, found.news, brief)
    return research_report.render(
        brief,
        text,
        rows,
        found.counts,
        groups=sources.groups(rows, found.pages),
        struck=[*struck, *more],
        missing=_missing(found),
    )


def _only_news(text: str, news: News, brief: Brief) -> str:
    """Return the report without what the last one could say, with a list of the new quotations."""
    if not news.rows:
        return NO_NEWS
    kept = question.only_new(text, {row.id for row in news.rows})
    kept = report_check.without_empty_sections(kept)
    listed = question.difference(news.rows, since=news.since, language=brief.language)
    return f"{kept.strip()}\n\n{listed}"


def _plain_report(found: Findings, brief: Brief) -> str:
    """Return the ledger as a report, for a job whose model wrote none."""
    lines = [f"## {one_line(brief.question)}", "", NOT_WRITTEN, ""]
    lines += [f"- {one_line(row.claim).rstrip('.')} [{row.id}]." for row in found.rows]
    return "\n".join(lines) + "\n"


def _missing(found: Findings) -> list[str]:
    """Return what could not be found out: the questions without evidence, and the gaps that the
    last look named. A gap whose text fails the check of reports is left out."""
    job, rows = found.job, found.rows
    named = [
        line
        for line in job.missing
        if not report_check.check_report(line, rows, question=job.question)
    ]
    return list(dict.fromkeys([*map(one_line, found.unread), *named]))


def close(tx: Tx, lease: Lease, label: Label, *, said: str = DELIVERED) -> None:
    """Mark a job as ended, and put the label of what it read on its thread.

    The caller ends the node in the same transaction. The thread holds only the plan, so no agent
    reflects on it; the findings are in the ledger and in the report.
    """
    append_at = threads.check_lease(tx, lease)
    JOBS.update(tx, lease.node_id, phase="ended", part_id=None)
    threads.append(
        tx,
        append_at,
        node_id=lease.node_id,
        role="user",
        ref=f"report:{lease.epoch}",
        text=f"[Runtime] {said}",
        label=label,
    )
    THREADS.update(tx, lease.thread_id, harvested_at=tx.now)


def deliver(tx: Tx, node: WorkNode, text: str) -> None:
    """Send the report, or why there is none, to the inbox, and a summary to the conversation.

    A report of a job that a limit ended is delivered as an incomplete one. A job that asked a
    question again and found nothing new delivers nothing.
    """
    assert node.asked_of is not None
    if standing.is_silent(node):
        return
    title = texts.title_of(node)
    report = (node.result or "").strip()
    if not report:
        why = text.strip() if text != texts.NO_WORDS else "It ended without a report."
        _send_to_inbox(tx, node, kind="failure", title=title, text=f"There is no report. {why}")
        return _send_summary(
            tx, node, f"I could not finish the research you asked for ({title}): {why}"
        )
    report = texts.fit_message(report)
    if node.status is not NodeStatus.COMPLETED:
        title = f"{title} (incomplete)"
    _send_to_inbox(tx, node, kind="report", title=title, text=texts.for_person(node, report))
    passages.put(
        tx,
        team_id=node.team_id,
        kind="report",
        ref=node.id,
        title=title,
        text=report,
        label=node.label | labels.of_nodes(tx, [node.id]),
    )
    lead = f"The research is done ({title}); the whole report is in your inbox."
    return _send_summary(tx, node, f"{lead}\n\n{summary(node.result or '')}")


def _send_to_inbox(tx: Tx, node: WorkNode, *, kind: MessageKind, title: str, text: str) -> None:
    bus.send(
        tx,
        team_id=node.team_id,
        sender=node.assignee_id or "system",
        recipient=planning.person_for(tx, node),
        kind=kind,
        title=title,
        text=text,
        node_id=node.id,
        refusable=False,
    )


def _send_summary(tx: Tx, node: WorkNode, text: str) -> None:
    """Send a summary as the agent that was asked, in its conversation with the person."""
    assert node.asked_of is not None
    bus.send(
        tx,
        team_id=node.team_id,
        sender=node.asked_of,
        recipient=planning.person_for(tx, node),
        text=text,
        node_id=node.id,
        refusable=False,
    )


def summary(report: str) -> str:
    """Return the report's section "Summary", else its first section with text, cut to SUMMARY
    characters."""
    found = _SECTION.search(report)
    parts = [found[1]] if found else _HEADINGS.split(report)
    said = next((part.strip() for part in parts if part.strip()), report.strip())
    return said if len(said) <= SUMMARY else said[: SUMMARY - 1].rstrip() + "…"
