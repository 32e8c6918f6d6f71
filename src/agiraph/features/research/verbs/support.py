"""Support: chooses the sentences of a report that a model compares with their quotations, and
counts them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agiraph.core.store.tx import Tx
from agiraph.features.research.model.evidence import EvidenceRow
from agiraph.features.research.model.jobs import ResearchJob
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.sentences import Unit, units
from agiraph.features.research.verbs import reading_budget

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
