"""Notices: reports of the runtime about itself, each of which a person gets once."""

from collections.abc import Iterable

from agiraph.domain.ids import SYSTEM
from agiraph.domain.value import value
from agiraph.domain.work import WorkNode
from agiraph.services.board import planning
from agiraph.services.mail import bus
from agiraph.store import messages
from agiraph.store.tx import Tx


@value
class Notice:
    """A change that a person has to look at."""

    key: str
    """Names the change, so that a restart or a second run that meets it sends nothing."""
    title: str
    text: str


def send_once(tx: Tx, node: WorkNode, notices: Iterable[Notice]) -> None:
    """Send each notice to the person that a node works for, unless the team has one with its
    key."""
    for notice in notices:
        if messages.by_client(tx, node.team_id, notice.key) is not None:
            continue
        bus.send(
            tx,
            team_id=node.team_id,
            sender=SYSTEM,
            recipient=planning.person_for(tx, node),
            kind="report",
            title=notice.title,
            text=notice.text,
            node_id=node.id,
            client_id=notice.key,
            refusable=False,
        )
