"""Acceptance lines: what done means for a node, given by a person or written by its agent."""

from collections.abc import Sequence
from typing import Literal

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeAcceptance
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Line, LineKind, WorkNode
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

MAX_LINES = 50
LINE_CHARACTERS = 1000


def paired(lines: Sequence[str], kinds: Sequence[LineKind | Literal["any"]] | None) -> list[Line]:
    """Return an agent's lines with their kinds; refuse a list of kinds of another length."""
    if kinds and len(kinds) != len(lines):
        raise Refused(
            f"There are {len(lines)} lines and {len(kinds)} kinds. Give a kind for each line, in "
            "their order: file, ran, judged or any."
        )
    if not kinds:
        return [Line(line) for line in lines]
    pairs = zip(lines, kinds, strict=True)
    return [Line(line, kind) if kind != "any" else Line(line) for line, kind in pairs]


def split(lines: Sequence[str | Line]) -> tuple[tuple[str, ...], dict[str, LineKind]]:
    """Return the texts of lines without blank ones, and the kinds of those that have one."""
    found = [Line(line) if isinstance(line, str) else line for line in lines]
    kept = [line._replace(text=line.text.strip()) for line in found if line.text.strip()]
    return tuple(line.text for line in kept), {line.text: line.kind for line in kept if line.kind}


def checked(lines: Sequence[str | Line]) -> tuple[tuple[str, ...], dict[str, LineKind]]:
    """Return a person's acceptance lines and their kinds; refuse too many or too long ones."""
    kept, kinds = split(lines)
    if len(kept) > MAX_LINES:
        raise Refused(f"{len(kept)} acceptance lines are too many; give at most {MAX_LINES}.")
    if long := [line for line in kept if len(line) > LINE_CHARACTERS]:
        raise Refused(
            f"The acceptance line {long[0][:60]!r}… is longer than {LINE_CHARACTERS:,} characters; "
            "put details into the goal."
        )
    return kept, kinds


def replace_lines(tx: Tx, node_id: NodeId, lines: Sequence[Line], *, keep: int | None) -> WorkNode:
    """Replace a node's lines after the first `keep`, or after all if it is None; return the node.

    A line that is kept is not added a second time, and keeps its kind.
    """
    node = NODES.get(tx, node_id, lock=True)
    kept = node.acceptance if keep is None else node.acceptance[:keep]
    new, kinds = split([line for line in lines if line.text.strip() not in kept])
    found = (*kept, *dict.fromkeys(new))
    kinds |= {line: kind for line, kind in node.line_kinds.items() if line in kept}
    if len(found) > MAX_LINES:
        raise Refused(f"{len(found)} acceptance lines are too many; keep to {MAX_LINES}.")
    NODES.update(tx, node_id, acceptance=found, line_kinds=kinds)
    tx.emit(node.team_id, NodeAcceptance(node_id=node_id, lines=list(found), kinds=kinds or None))
    return NODES.get(tx, node_id)
