"""Reviews: a reviewer judges a result before it counts. A review is a node below the judged one.

The call that submits the result waits for the review and is made again when it has ended. So the
rows alone decide what comes next, and a crash neither loses nor repeats a review.
"""

from collections.abc import Sequence
from typing import NamedTuple

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import SYSTEM, NodeId
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.work import StopReason, WaitingOn, WorkNode
from agiraph.core.domain.work_kinds import WorkKind
from agiraph.core.services.board import budgets, planning, texts, waiting
from agiraph.core.services.board.feature_verbs import KindVerbs
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import dependencies, nodes, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

REVIEWER = "reviewer"
"""The name of the specialist that reviews results."""
TURNS = 15
"""The most turns of a review."""
MAX_REWORKS = 2
"""How often a result is sent back by reviewers. After that it counts, with doubts."""


REVIEW = WorkKind(
    name="review",
    is_step=True,
    reads_above=True,
    may_ask=False,
    recalls=False,
    is_reflected_on=False,
    no_requests="A person would have to approve this call. Judge without it.",
    runner="agiraph.features.reviews.kind:REVIEW",
    verbs="agiraph.features.reviews.verbs:VERBS",
)
"""The judgement of a result by somebody else. It waits for nobody: without a verdict the result
counts with doubts."""
KINDS = {REVIEW.name: REVIEW}


class Found(NamedTuple):
    """What the rows say about the review of a result."""

    is_wanted: bool
    """Whether others build on the result, or a person gets it."""
    review: WorkNode | None
    """The review of this call, if there is one."""
    reworks: int
    """How many reviews of the node have sent its result back."""
    label: Label = CLEAN
    turns: Sequence[Turn] = ()
    """Those of a review that has ended."""


def look(tx: Tx, node: WorkNode, call_id: str, task: str) -> Found:
    """Return what the rows say about the review of the result that this call submits.

    A message may have interrupted the call that waited for a review. If the same task was judged
    in the meantime, its verdict holds.
    """
    reviews = [child for child in nodes.children(tx, node.id) if child.kind is REVIEW]
    same = [r for r in reviews if r.task == task and r.stop_reason is StopReason.ACCEPTED]
    review = next((r for r in reviews if r.reviews_call == call_id), same[-1] if same else None)
    thread = None if review is None else threads.of_node(tx, review.id)
    turns = () if thread is None else threads.turns(tx, thread.id)
    return Found(
        is_wanted=_is_wanted(tx, node),
        review=review,
        reworks=sum(r.stop_reason is StopReason.SENT_BACK for r in reviews),
        label=CLEAN if review is None else review.label,
        turns=[turn for turn in turns if review is not None and turn.node_id == review.id],
    )


def _is_wanted(tx: Tx, node: WorkNode) -> bool:
    """Whether a person gets the result, or another node waits for it or is built on it."""
    return (
        is_person(node.creator_id)
        or node.asked_of is not None
        or node.stage_id is not None
        or bool(dependencies.dependents(tx, node.id))
        or bool(waits.on(tx, WaitingOn("node", node.id)))
    )


def begin(tx: Tx, hirer: Hirer, node_id: NodeId, *, call_id: str, task: str) -> WorkNode:
    """Return the review of the result that this call submits: a new one, or an earlier one.

    A message may have interrupted the wait for an open review. If the result is the same, the
    review goes on; if not, it is cancelled. Raises `Refused` if nobody can review.
    """
    node = NODES.get(tx, node_id)
    for left in nodes.children(tx, node.id):
        if left.task == task and left.stop_reason is StopReason.ACCEPTED:
            return left  # it ended since `look`
        if left.kind is not REVIEW or left.status.is_final:
            continue
        if left.task == task:
            NODES.update(tx, left.id, reviews_call=call_id)
            return NODES.get(tx, left.id)
        endings.cancel(tx, left.id)
    share = budgets.share(tx, node, turns=TURNS)
    if share.model_calls == 0 or share.tokens == 0:
        raise Refused("the budget is spent")
    reviewer = roster.specialist(tx, hirer, REVIEWER)
    review = planning.create(
        tx,
        team_id=node.team_id,
        task=task,
        title=texts.truncate(f"Review of {texts.subject_of(node)}", texts.TITLE),
        source="delegation",
        creator_id=SYSTEM,
        assignee_id=reviewer.id,
        parent_id=node.id,
        refs=node.refs,
        budget=share,
        kind=REVIEW,
        reviews_call=call_id,
    )
    roster.set_purpose(tx, reviewer, review.id)
    return review


class _Review(KindVerbs):
    def ended(self, tx: Tx, node: WorkNode, text: str) -> bool:
        # Without an answer: the call that submits the result is made again and reads the verdict.
        waiting.settle(tx, WaitingOn("node", node.id), None)
        return True


VERBS = _Review()
