"""Kinds of work of research: a job, and its steps."""

from dataclasses import replace

from agiraph.core.domain.work import WorkNode
from agiraph.core.domain.work_kinds import WorkKind
from agiraph.features.research.model.jobs import Part

_USED_UP = (
    "Budget exhausted — synthesise your findings now. All {limit} calls of {tool} are used: "
    "note what you have read and not noted yet, then call done."
)
_RUNNER = "agiraph.features.research.kind"
_VERBS = "agiraph.features.research.verbs.kind_verbs"
RESEARCH = WorkKind(
    name="research",
    may_ask=False,
    is_told=False,
    goes_on=False,
    calls_used_up=_USED_UP,
    runner=f"{_RUNNER}:JOB",
    verbs=f"{_VERBS}:JOB",
)
_STEP = WorkKind(
    name="step",
    is_step=True,
    is_bounded_above=True,
    hears_mail=False,
    may_ask=False,
    sees_team=False,
    is_told=False,
    is_reviewed=False,
    calls_used_up=_USED_UP,
    goes_on=False,
    runner=f"{_RUNNER}:STEP",
    verbs=f"{_VERBS}:STEP",
)
_STEPS: dict[Part, WorkKind] = {
    "reader": replace(_STEP, name="reader", runner=f"{_RUNNER}:READER"),
    "gaps": replace(_STEP, name="gaps"),
    "writing": replace(_STEP, name="writing"),
    "support": replace(_STEP, name="support"),
}
_LABELLED: dict[Part, WorkKind] = {
    part: replace(kind, name=f"labelled_{kind.name}", sees_team=True)
    for part, kind in _STEPS.items()
}
"""Steps of a job that holds untrusted words: they are bound as every labelled thread is."""
_PARTS: dict[WorkKind, Part] = {
    RESEARCH: "job",
    **{kind: part for kinds in (_STEPS, _LABELLED) for part, kind in kinds.items()},
}
KINDS = {kind.name: kind for kind in _PARTS}


def step(part: Part, *, is_labelled: bool) -> WorkKind:
    """Return the kind of a step of a job."""
    return (_LABELLED if is_labelled else _STEPS)[part]


def part_of(node: WorkNode) -> Part | None:
    """Return what a node does for a research job; None for all other work."""
    return _PARTS.get(node.kind)
