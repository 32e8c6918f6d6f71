"""Acceptance lines: what done means for a node, given by a person or written by its agent."""

from collections.abc import Sequence

from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeAcceptance
from agiraph.domain.ids import NodeId
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

MAX_LINES = 50
LINE_CHARACTERS = 1000


def checked(lines: Sequence[str]) -> tuple[str, ...]:
    """Return a person's acceptance lines without blank ones; refuse too many or too long ones."""
    kept = tuple(line.strip() for line in lines if line.strip())
    if len(kept) > MAX_LINES:
        raise Refused(f"{len(kept)} acceptance lines are too many; give at most {MAX_LINES}.")
    if long := [line for line in kept if len(line) > LINE_CHARACTERS]:
        raise Refused(
            f"The acceptance line {long[0][:60]!r}… is longer than {LINE_CHARACTERS:,} characters; "
            "put details into the goal."
        )
    return kept


def replace_lines(
    tx: Tx, node_id: NodeId, lines: Sequence[str], *, keep: int | None
) -> tuple[str, ...]:
    """Replace a node's lines after the first `keep`, or after all if it is None; return them all.

    A line that is kept is not added a second time.
    """
    node = NODES.get(tx, node_id, lock=True)
    kept = node.acceptance if keep is None else node.acceptance[:keep]
    new = [line.strip() for line in lines if line.strip() and line.strip() not in kept]
    found = (*kept, *dict.fromkeys(new))
    if len(found) > MAX_LINES:
        raise Refused(f"{len(found)} acceptance lines are too many; keep to {MAX_LINES}.")
    NODES.update(tx, node_id, acceptance=found)
    tx.emit(node.team_id, NodeAcceptance(node_id=node_id, lines=list(found)))
    return found
