"""Notices: reports of the runtime about itself, each of which a person gets once."""

from dataclasses import replace

from agiraph.domain.ids import SYSTEM
from agiraph.domain.work import WorkNode
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
    draft = replace(bus.to_person(tx, node, text), sender=SYSTEM, kind="report", title=title)
    bus.send(tx, replace(draft, client_id=key), refusable=False)
