"""Shares, as rows: the links to reports, found by their secret or by their report."""

import json
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import NodeId, PersonId, TeamId
from agiraph.core.domain.value import value
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services import access
from agiraph.core.store import teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx

_DELIVERED = (NodeStatus.COMPLETED, NodeStatus.PARTIAL)


@value
class Share:
    """A link to one report. Only the digest of its secret is stored."""

    id: str
    team_id: TeamId
    node_id: NodeId
    digest: str
    report_hash: str
    """Of the report as it was shared: the link shows no other version."""
    person_id: PersonId
    """Who made it."""
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    opened_at: datetime | None = None
    """When it was opened for the first time."""
    opens: int = 0


SHARES = Table("shares", Share)
TABLES = (SHARES,)


class SharedReport(NamedTuple):
    """A report that a link shows."""

    share: Share
    node: WorkNode
    author: str
    """The name of the agent that wrote it; empty: it is not known."""


def live(tx: Tx, node_id: NodeId) -> list[Share]:
    """Return the links to a report that work now, the newest first."""
    where = "node_id = :node and revoked_at is null and expires_at > :now"
    order = "order by created_at desc, id desc"
    found = SHARES.select(tx, f"{where} {order}", node=node_id, now=to_micros(tx.now))
    node = NODES.get(tx, node_id)
    return [share for share in found if share.report_hash == hash_of(node)]


def shown_by(tx: Tx, secret: str) -> SharedReport | None:
    """Return what a link shows. None if it is unknown, revoked or too old, if the report was
    changed, or if the report or its team is gone: nothing tells a reader which."""
    found = SHARES.select(tx, "digest = :digest", digest=access.digest(secret))
    share = found[0] if found else None
    if share is None or share.revoked_at is not None or share.expires_at <= tx.now:
        return None
    node = NODES.find(tx, share.node_id)
    if node is None or not is_report(node) or hash_of(node) != share.report_hash:
        return None
    try:
        teams.find(tx, node.team_id)
    except NotFound:
        return None
    author = AGENTS.find(tx, node.assignee_id) if node.assignee_id else None
    return SharedReport(share, node, author.name if author else "")


def is_report(node: WorkNode) -> bool:
    """Whether work has delivered a result that can be read."""
    return node.status in _DELIVERED and node.ended_at is not None and bool(node.result)


def hash_of(node: WorkNode) -> str:
    """Return the hash of a result and of the files that were published with it."""
    held = json.dumps([node.result, sorted(node.manifest.items())])
    return sha256(held.encode()).hexdigest()
