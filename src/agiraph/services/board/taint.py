"""Taint: follows tainted words from one piece of work to the next."""

from collections.abc import Iterable
from functools import reduce

from agiraph.domain.ids import SYSTEM, NodeId, StageId
from agiraph.domain.persons import is_person
from agiraph.domain.taint import graver
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import WorkNode
from agiraph.store import dependencies, messages, stages, threads
from agiraph.store.tx import Tx


def of_nodes(tx: Tx, node_ids: Iterable[str]) -> str | None:
    """Return what taints the results and files of these nodes; None if nothing does."""
    return reduce(graver, (threads.tainter_of_node(tx, node_id) for node_id in node_ids), None)


def of_task(tx: Tx, node: WorkNode) -> str | None:
    """Return what taints a node's task, its messages and the work it builds on; None if nothing."""
    named = [path.split("/")[1] for path in node.refs.values() if path.startswith("nodes/")]
    needed = [needed.id for needed in dependencies.needs(tx, node.id)]
    said = reduce(graver, (m.tainted_by for m in messages.of_node(tx, node.id)), None)
    return graver(graver(node.tainted_by, said), of_nodes(tx, [*named, *needed]))


def of_words(tx: Tx, sender: str, node_id: NodeId | None) -> str | None:
    """Return what taints a message; a person vouches for their own words."""
    if is_person(sender) or sender == SYSTEM or node_id is None:
        return None
    return threads.tainter_of_node(tx, node_id)


def of_wait(tx: Tx, waiting_on: WaitingOn) -> str | None:
    """Return what taints the answer to a wait; a person's answer and a clock's are not tainted."""
    match waiting_on.kind:
        case "node":
            return of_nodes(tx, [waiting_on.id])
        case "stage":
            return of_nodes(tx, [node.id for node in stages.nodes(tx, StageId(waiting_on.id))])
        case _:
            return None


def of_board(tx: Tx, shown: Iterable[WorkNode]) -> str | None:
    """Return what taints a list of nodes: tainted work wrote some titles and waiting reasons."""
    found: str | None = None
    for node in shown:
        found = graver(found, node.tainted_by)
        if node.waiting_reason:
            found = graver(found, threads.tainter_of_node(tx, node.id))
    return found
