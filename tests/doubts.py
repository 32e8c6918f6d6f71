"""Doubts: what a result's doubts say, in one text, for the tests that are about what they say."""

from agiraph.core.domain.work import WorkNode


def doubts_of(node: WorkNode) -> str | None:
    """Return a node's doubts as one text, joined by semicolons; None if it has none."""
    told = (
        doubt.words if doubt.node_id is None else f"{doubt.title!r} {doubt.words}"
        for doubt in node.doubts
    )
    return "; ".join(told) or None
