"""Kind verbs: what the end, the state and a late answer of research mean."""

from collections.abc import Sequence

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import Label, join
from agiraph.core.domain.text.fence import LOOK, Line, one_line
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import texts
from agiraph.core.services.board.feature_verbs import KindVerbs
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import EvidenceRow
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import delivery, frame, ledger, starting
from agiraph.web.access import Web
from agiraph.web.page import WebPage


class _Job(KindVerbs):
    def delivered(self, tx: Tx, node: WorkNode, text: str) -> bool:
        if node.status is NodeStatus.CANCELLED:
            return False
        delivery.deliver(tx, node, text)
        return is_person(node.creator_id)

    def state_lines(self, tx: Tx, node: WorkNode) -> list[Line]:
        job, rows = JOBS.find(tx, node.id), evidence.of_job(tx, node.id)
        if job is None or not job.readings:
            return []
        asked = (
            f"- {node.id} reads for {counted(len(job.readings), 'question')} and has noted "
            f"{counted(len(rows), 'finding')}"
        )
        told = [f"{asked}:"]
        for each in job.readings:
            found = counted(sum(row.question == each.number for row in rows), "finding")
            told.append(f"  {each.number}. {texts.truncate(each.question, 160)}: {found}")
        told += [f'  [{r.id}] {r.claim} "{texts.truncate(r.quote, 160)}"' for r in rows[-5:]]
        label = join(row.label for row in rows) | join(each.label for each in job.readings)
        plain = f"{asked}; {LOOK.format(id=node.id)}"
        return [Line("\n".join(told), label | node.label, plain)]

    def goes_on_with(self, tx: Tx, node: WorkNode, said: Message, person_id: PersonId) -> bool:
        try:
            starting.continue_with_answer(
                tx, node, said.text, person_id=person_id, label=said.label
            )
        except Refused:  # the team has no room for another one
            return False
        return True

    def taken_up(
        self, tx: Tx, node: WorkNode, by: Hirer, asked: Sequence[Message], web: Web
    ) -> WorkNode | None:
        goal = "\n\n".join(message.text for message in asked)
        starting.check_engine(web, goal)
        label = join(message.label for message in asked)
        return starting.start(tx, by, goal, label=label, asks=True, earlier=node)

    def sources(self, tx: Tx, node: WorkNode) -> tuple[str, Label]:
        rows = evidence.of_job(tx, node.id)
        return _ledger(rows), join(row.label for row in rows)


class _Step(KindVerbs):
    def ended(self, tx: Tx, node: WorkNode, text: str) -> bool:
        frame.ended(tx, node, text)
        return True

    def taken_up(
        self, tx: Tx, node: WorkNode, by: Hirer, asked: Sequence[Message], web: Web
    ) -> WorkNode | None:
        assert node.parent_id is not None
        return JOB.taken_up(tx, NODES.get(tx, node.parent_id), by, asked, web)

    def page_read(self, tx: Tx, node: WorkNode, page: WebPage) -> None:
        given = {"url": page.url, "title": page.title, "published": page.published}
        ledger.keep_page(tx, node, text=page.text, **given)


def _ledger(rows: Sequence[EvidenceRow]) -> str:
    """Return the evidence of a research as sections, one for each page, so that a section can be
    found by what it is about."""
    by_page: dict[str, list[EvidenceRow]] = {}
    for row in rows:
        by_page.setdefault(row.url, []).append(row)
    parts: list[str] = []
    for url, noted in by_page.items():
        facts = ", ".join(filter(None, [noted[0].source_class, noted[0].published]))
        lines = [f"- {row.claim} ({row.stance})\n  “{row.quote}”" for row in noted]
        title = one_line(noted[0].title) or url
        parts.append(f"\n\n## Evidence from {title}\n\n{url} ({facts})\n" + "\n".join(lines))
    return "".join(parts)


JOB = _Job()
STEP = _Step()
