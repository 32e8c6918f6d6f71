"""Kind verbs: what the end, the state and a late answer of research mean."""

from agiraph.domain.errors import Refused
from agiraph.domain.ids import PersonId
from agiraph.domain.labels import join
from agiraph.domain.messages import Message
from agiraph.domain.persons import is_person
from agiraph.domain.plurals import counted
from agiraph.domain.prompt_lines import LOOK, Line
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import texts
from agiraph.services.board.kind_verbs import KindVerbs
from agiraph.services.research import delivery, parts, starting
from agiraph.store import evidence
from agiraph.store.research import JOBS
from agiraph.store.tx import Tx


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


class _Step(KindVerbs):
    def ended(self, tx: Tx, node: WorkNode, text: str) -> bool:
        parts.ended(tx, node, text)
        return True


JOB = _Job()
STEP = _Step()
