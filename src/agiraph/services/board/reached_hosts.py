"""Reached hosts: records which hosts a command reaches, with the label of what it receives."""

from agiraph.domain.chat import Lease
from agiraph.domain.events.team import GrantUsed
from agiraph.domain.events.work import NetworkReached, NetworkRefused
from agiraph.domain.grants import Grant
from agiraph.domain.labels import Label
from agiraph.store import grants, threads
from agiraph.store.tx import Tx

COMMAND = "bash"
"""The tool that events of grants name."""


def record(tx: Tx, lease: Lease, *, call_id: str, host: str, use: str, label: Label) -> None:
    """Record that a command reaches a host, and label its thread; raise `Fenced` for a stale lease.

    The gate calls this before it sends anything: after a crash the thread is labelled although the
    command has no answer, and so are the files that the command has written.
    """
    threads.check_lease(tx, lease)  # also locks the row, so that no other label is lost
    grant = _grant_for(tx, lease, use, host)
    if grant is not None and grants.use(tx, grant):
        used = GrantUsed(grant_id=grant.id, node_id=lease.node_id, call_id=call_id, tool=COMMAND)
        tx.emit(lease.team_id, used)
    reached = NetworkReached(
        node_id=lease.node_id,
        call_id=call_id,
        host=host,
        use=use,
        grant_id=None if grant is None else grant.id,
    )
    tx.emit(lease.team_id, reached)
    if label:
        threads.add_label(tx, lease.thread_id, label)


def record_refusals(tx: Tx, lease: Lease, *, call_id: str, sentences: list[str]) -> None:
    """Record what the gate refused a command."""
    refused = NetworkRefused(node_id=lease.node_id, call_id=call_id, sentences=sentences)
    tx.emit(lease.team_id, refused)


def _grant_for(tx: Tx, lease: Lease, use: str, host: str) -> Grant | None:
    """Return the grant by which a host is reached; None for a host that needs none."""
    if use == "packages":
        return None
    reach = grants.find(tx, lease.team_id, "reach", host)
    return reach or (grants.find(tx, lease.team_id, "read", host) if use == "git" else None)
