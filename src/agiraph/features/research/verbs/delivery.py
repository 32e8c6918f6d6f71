"""Delivery: what a research job delivers: a report whose statements hold, to inbox and chat."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import MessageKind
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import jobs, labels, texts
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.mail import bus
from agiraph.core.store import spend, threads
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.texts import passages
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import report as research_report
from agiraph.features.research.model import report_check, sources
from agiraph.features.research.model.jobs import Brief, EvidenceRow, ResearchJob
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.report import Counts, Report
from agiraph.features.research.model.report_words import ReportPhrases, english, words_of
from agiraph.features.research.model.sentences import Unit, units
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import frame, reading_budget, standing_questions
from agiraph.features.research.verbs import planning as steps
from agiraph.features.research.verbs.answers import plain_brief
from agiraph.features.research.verbs.standing_questions import News
from agiraph.features.research.verbs.starting import FETCH, SEARCH
from agiraph.redaction import mask_secrets

DELIVERED = "The report was delivered."
MOST_LEARNED = 5
"""The most facts that one report adds to what the team knows."""
SUMMARY = 1200
"""Characters of a report that go into the conversation; the inbox holds all of it."""
_SECTION = re.compile(
    r"^#+\s*summary\s*$(.*?)(?=^#+\s|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\]\((?:[^()]|\([^()]*+\))*+\)|[\[\]<>]")
"""What makes words a link or an element, without the words themselves."""
_HEADINGS = re.compile(r"^#+[ \t].*$", re.MULTILINE)
_RESULT = re.compile(r"(\d+) of (\d+) sentences compared")


class Compared(NamedTuple):
    """How many sentences of a report were compared with their quotations."""

    done: int
    all: int

    def as_result(self, struck: int) -> str:
        """Return the result of the node that compared the report's sentences with their quotations.

        `struck` is how many sentences were removed from the report.
        """
        return f"{self.done} of {self.all} sentences compared, {struck} struck."


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
    """Sub-questions without evidence or whose reader was not done, with the reason."""
    not_written: str
    """Why the last report could not be written; empty if it was."""
    label: Label
    """The sources of all that the parts of the job have read."""
    opened: int
    """How many pages the job itself has read."""
    compared: Compared | None
    """How many sentences were compared with their quotations; None: the depth has no such check."""
    news: News | None = None
    """What is new, if the question was asked before."""

    @property
    def brief(self) -> Brief:
        return self.job.brief or plain_brief(self.job.question)

    @property
    def words(self) -> ReportPhrases:
        return words_of(self.brief.language)


def gather(tx: Tx, job_id: NodeId) -> Findings:
    """Return what a job has found out so far."""
    job, node = JOBS.get(tx, job_id), NODES.get(tx, job_id)
    rows = tuple(evidence.of_job(tx, job_id))
    parts = reading_budget.parts(tx, job_id)
    done = NodeStatus.COMPLETED
    last = next((part for part in reversed(parts) if part_of(part) == "writing"), None)
    stopped = StopReason(job.stopped) if job.stopped else None
    return Findings(
        job=job,
        rows=rows,
        pages=research.texts(tx, research.chain(tx, job_id)),
        counts=_counts(tx, node, job, stopped),
        stopped=stopped,
        unread=_unread(job, rows, reading_budget.unfinished(tx, job_id)),
        not_written="" if last is None or last.status is done else frame.why_failed(last),
        label=labels.of_nodes(tx, [part.id for part in parts]) | join(row.label for row in rows),
        opened=research.count_pages(tx, job_id),
        compared=compared(tx, job, rows),
        news=standing_questions.news(tx, job),
    )


def _unread(
    job: ResearchJob, rows: Sequence[EvidenceRow], unfinished: Mapping[NodeId, StopReason | None]
) -> tuple[str, ...]:
    words = words_of("" if job.brief is None else job.brief.language)
    answered, found = {row.question for row in rows}, list[str]()
    for each in job.readings:
        asked = one_line(each.question)
        if each.node_id is not None and each.node_id in unfinished:
            reason = unfinished[each.node_id]
            why = words.wanted_more if reason is None else words.of_reader(reason)
            found.append(f"{asked} ({why})")
        elif each.number not in answered:
            found.append(asked)
    return tuple(found)


def _counts(tx: Tx, node: WorkNode, job: ResearchJob, stopped: StopReason | None) -> Counts:
    used = jobs.used_calls(tx, node)
    readers = reading_budget.readers(tx, job.id)
    words = words_of("" if job.brief is None else job.brief.language)
    is_priced = any(row.usd for part in [node, *readers] for row in spend.of_node(tx, part.id))
    return Counts(
        depth=job.depth or "standard",
        searches=used[SEARCH],
        pages=used[FETCH],
        usd=spend.total(tx, node.id).usd if is_priced else None,
        engine=reading_budget.engines(tx, job),
        stopped="" if stopped is None else words.stopped.format(reason=words.of_limit(stopped)),
    )


def compose(found: Findings) -> Report:
    """Return the report with its files. Whatever a model wrote, only what its evidence shows is in
    it: everything is compared with the ledger once more."""
    job, rows = found.job, found.rows
    text, struck = job.draft, list(job.struck)
    if not text.strip():
        text, struck = _plain_report(found), []
    text, more = report_check.enforce(text, rows, question=job.question)
    if not rows:
        text = found.words.nothing
    if found.news is not None:
        text = _only_news(text, found, found.news)
    report = research_report.render(
        found.brief,
        text,
        rows,
        found.counts,
        groups=sources.groups(rows, found.pages),
        struck=[*struck, *more],
        missing=_missing(found),
    )
    if found.compared is None or found.compared.done >= found.compared.all:
        return report
    # The last section tells how the report was made.
    said = found.words.compared.format(done=found.compared.done, all=found.compared.all)
    return report._replace(markdown=f"{report.markdown.rstrip()} {said}\n")


def _only_news(text: str, found: Findings, news: News) -> str:
    """Return the report without what the last report could already say, and with a list of the new
    quotations.

    The list is added after the check of the report, so its quotations are shown without links.
    """
    if not news.rows:
        return found.words.no_news if found.opened else found.words.no_page
    kept = standing_questions.only_new(text, {row.id for row in news.rows})
    kept = report_check.without_empty_sections(kept)
    shown = [_LINK.sub("", report_check.without_urls(row.quote)) for row in news.rows]
    rows = [replace(row, quote=quote) for row, quote in zip(news.rows, shown, strict=True)]
    listed = standing_questions.difference(rows, since=news.since, language=found.brief.language)
    return f"{kept.strip()}\n\n{listed}"


def _plain_report(found: Findings) -> str:
    """Return the ledger as a report, for a job whose model wrote none."""
    lines = [f"## {one_line(found.brief.question)}", "", found.words.not_written, ""]
    lines += [_plain_item(row, found.job.question) for row in found.rows]
    return "\n".join(lines) + "\n"


def _plain_item(row: EvidenceRow, question: str) -> str:
    """Return an entry of the ledger as a list item: its claim, or its quotation if the claim has
    numbers or quotations of its own."""
    said = f"- {one_line(row.claim).rstrip('.')} [{row.id}]."
    if report_check.check_report(said, [row], question=question):
        return f"- “{report_check.plain(row.quote)}” [{row.id}]."
    return said


def _missing(found: Findings) -> list[str]:
    """Return what could not be found out: the questions without evidence, and the gaps that the
    last look named. A gap whose text fails the check of reports is left out."""
    job, rows = found.job, found.rows
    named = [
        line
        for line in job.missing
        if line != steps.not_used()
        and not report_check.check_report(line, rows, question=job.question)
    ]
    unused = [found.words.not_used] if steps.not_used() in job.missing else []
    return list(dict.fromkeys([*unused, one_line(found.not_written), *found.unread, *named]))


def learn(tx: Tx, lease: Lease, found: Findings) -> None:
    """Store what the report cites first as facts of the agent that was asked.

    They have the labels of their pages, so they are unverified unless the team's trust is open.
    """
    node = NODES.get(tx, lease.node_id)
    if node.asked_of is None or not TEAMS.get(tx, node.team_id).learns:
        return
    own = {row.id: row for row in found.rows if row.job_id == node.id}
    cited = dict.fromkeys(id for unit in units(found.job.draft) for id in unit.ids if id in own)
    for row in [own[id] for id in cited if own[id].stance == "supports"][:MOST_LEARNED]:
        said = f"{row.claim} ({sources.host_of(row.url)}, {row.fetched_at:%Y-%m-%d})"
        agent, label = AGENTS.get(tx, node.asked_of), row.label | node.label
        for verbs in find_verbs():
            verbs.keep_fact(tx, lease, agent, mask_secrets(said), label=label)


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
    if standing_questions.is_silent(node):
        return
    title = texts.subject_of(node)
    report = (node.result or "").strip()
    if not report:
        why = text.strip() if text != texts.NO_WORDS else "It ended without a report."
        _send_to_inbox(tx, node, kind="failure", title=title, text=f"There is no report. {why}")
        return _send_summary(
            tx, node, f"I could not finish the research you asked for ({title}): {why}"
        )
    report = texts.fit_message(report)
    has_found = node.stop_reason is not StopReason.NOT_REACHED
    if node.status is not NodeStatus.COMPLETED and has_found:
        title = f"{title} (incomplete)"
    said = texts.for_person(node, report) if has_found else report  # which itself says so
    _send_to_inbox(tx, node, kind="report", title=title, text=said)
    passages.put(
        tx,
        team_id=node.team_id,
        kind="report",
        ref=node.id,
        title=title,
        text=report,
        label=node.label | labels.of_nodes(tx, [node.id]),
    )
    lead = f"The research is done ({title})"
    if not JOBS.get(tx, node.id).draft.strip() and evidence.count(tx, node.id):
        lead = f"The research has ended, but its report could not be written ({title})"
    if node.status is not NodeStatus.COMPLETED and node.stop_reason is not None:
        lead = f"The research ended early: {english().of_limit(node.stop_reason)} ({title})"
    if not has_found:
        lead = f"The research found nothing ({title})"
    lead += "; all of it is in your inbox."
    return _send_summary(tx, node, f"{lead}\n\n{summary(node.result or '')}")


def _send_to_inbox(tx: Tx, node: WorkNode, *, kind: MessageKind, title: str, text: str) -> None:
    to_person = bus.to_person(tx, node, text)
    draft = replace(to_person, kind=kind, title=title, doubts=node.doubts)
    bus.send(tx, draft, refusable=False)


def _send_summary(tx: Tx, node: WorkNode, text: str) -> None:
    """Send a summary as the agent that was asked, in its conversation with the person."""
    assert node.asked_of is not None
    bus.send(tx, replace(bus.to_person(tx, node, text), sender=node.asked_of), refusable=False)


def summary(report: str) -> str:
    """Return the report's section "Summary", else its first section with text, cut to SUMMARY
    characters."""
    found = _SECTION.search(report)
    parts = [found[1]] if found else _HEADINGS.split(report)
    said = next((part.strip() for part in parts if part.strip()), report.strip())
    return said if len(said) <= SUMMARY else said[: SUMMARY - 1].rstrip() + "…"


def to_compare(job: ResearchJob, rows: Sequence[EvidenceRow]) -> list[Unit]:
    """Return the sentences of a job's report that a model compares with their quotations: of a
    standard job the items of its lists, which are the key findings."""
    known = {row.id for row in rows}
    cited = [
        unit
        for unit in units(job.draft)
        if unit.kind != "heading" and any(id in known for id in unit.ids)
    ]
    if job.limits.support == "key findings":
        cited = [unit for unit in cited if unit.is_item] or cited
    return cited


def compared(tx: Tx, job: ResearchJob, rows: Sequence[EvidenceRow]) -> Compared | None:
    """Return how much of a job's report was compared, from the result of the part that did it; None
    if the last part of the job was another."""
    parts = reading_budget.parts(tx, job.id)
    if not parts or part_of(parts[-1]) != "support":
        return None
    found = _RESULT.match(parts[-1].result or "")
    if found is None:  # the part failed
        return Compared(0, len(to_compare(job, rows)))
    return Compared(int(found[1]), int(found[2]))
