"""Notices: reports of the runtime about itself, each of which a person gets once."""

from agiraph.domain.ids import SYSTEM
from agiraph.domain.work import WorkNode
from agiraph.services.board import planning
from agiraph.services.mail import bus
from agiraph.store import messages
from agiraph.store.tx import Tx


def send_once(tx: Tx, node: WorkNode, *, key: str, title: str, text: str) -> None:
    """Send a report to the person that a node works for, unless the team has one with this key.

    The key names the event that the report is about, so that a restart or a second run that meets
    the same event sends nothing.
    """
    if messages.by_client(tx, node.team_id, key) is not None:
        return
    bus.send(
        tx,
        team_id=node.team_id,
        sender=SYSTEM,
        recipient=planning.person_for(tx, node),
        kind="report",
        title=title,
        text=text,
        node_id=node.id,
        client_id=key,
        refusable=False,
    )
