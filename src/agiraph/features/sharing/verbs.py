"""Verbs of sharing: make, revoke and open a link to a report."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.work import ReportShared
from agiraph.core.domain.ids import NodeId, PersonId, new_id
from agiraph.core.services import access
from agiraph.core.store import teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.sharing.rows import SHARES, Share, hash_of, is_report

LONGEST = 400_000
"""Characters of the longest report that is shared: each reader's request makes a page of it."""


class Made(NamedTuple):
    share: Share
    secret: str


def make(tx: Tx, node_id: NodeId, person_id: PersonId, *, life: timedelta) -> Made:
    """Make a link to the report of a node, as the report is now."""
    node = NODES.get(tx, node_id)
    teams.find(tx, node.team_id)
    if not is_report(node):
        raise Refused("This work has delivered no report yet. Share it when it is done.")
    if len(node.result or "") > LONGEST:
        raise Refused(f"A report of more than {LONGEST:,} characters is not shared. Save it.")
    secret = secrets.token_urlsafe(32)
    share = Share(
        id=new_id("share"),
        team_id=node.team_id,
        node_id=node.id,
        digest=access.digest(secret),
        report_hash=hash_of(node),
        person_id=person_id,
        created_at=tx.now,
        expires_at=tx.now + life,
    )
    SHARES.insert(tx, share)
    until = share.expires_at.isoformat()
    made = ReportShared(node_id=node.id, share_id=share.id, step="made", expires_at=until)
    tx.emit(node.team_id, made)
    return Made(share, secret)


def revoke(tx: Tx, node_id: NodeId, share_id: str) -> None:
    """Make a link dead from now on. Raise `NotFound` if the report has no such link."""
    share = SHARES.find(tx, share_id, lock=True)
    if share is None or share.node_id != node_id:
        raise NotFound("link", share_id, known="The report has none of this id.")
    if share.revoked_at is None:
        SHARES.update(tx, share_id, revoked_at=tx.now)
        tx.emit(share.team_id, ReportShared(node_id=node_id, share_id=share_id, step="revoked"))


def note_open(tx: Tx, share_id: str) -> None:
    """Count that a link was opened. The first time is an event, and stands in the audit."""
    share = SHARES.find(tx, share_id, lock=True)
    if share is None:
        return
    SHARES.update(tx, share_id, opens=share.opens + 1, opened_at=share.opened_at or tx.now)
    if share.opened_at is None:
        opened = ReportShared(node_id=share.node_id, share_id=share_id, step="opened")
        tx.emit(share.team_id, opened)
        access.record_action(
            tx,
            who=f"Shared link ({share_id})",
            person_id=share.person_id,
            method="GET",
            path=f"/api/nodes/{share.node_id}/shares/{share_id}",
            status=200,
        )
