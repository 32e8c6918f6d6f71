"""Kind verbs: what the end, the state and a late answer of work mean, by its kind."""

from collections.abc import Sequence
from typing import cast

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.features import found_at
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Failed
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.prompt_lines import Line
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.members.hiring import Hirer
from agiraph.core.store.tx import Tx
from agiraph.web.access import Web
from agiraph.web.page import WebPage


class KindVerbs:
    """The verbs of an ordinary task; other kinds replace some of them."""

    def ended(self, tx: Tx, node: WorkNode, text: str) -> bool:
        """Do what the end of a node means. Return False if whoever gave it is told as usual."""
        return False

    def delivered(self, tx: Tx, node: WorkNode, text: str) -> bool:
        """Give people what an ended node has found. Return whether its creator has it with that."""
        return False

    def failed(self, tx: Tx, lease: Lease, outcome: Failed) -> bool:
        """End the node of a run that failed. Return False if it ends as usual."""
        return False

    def agent_idle(self, tx: Tx, agent: Agent, last: WorkNode) -> None:
        """Do what follows this node, which an agent has just ended."""

    def state_lines(self, tx: Tx, node: WorkNode) -> list[Line]:
        """Return what a reply is told about open work beyond the line that all work has."""
        return []

    def goes_on_with(self, tx: Tx, node: WorkNode, said: Message, person_id: PersonId) -> bool:
        """Go on with the late answer to a question of work that has ended. Return False if it does
        not go on by itself."""
        return False

    def taken_up(
        self, tx: Tx, node: WorkNode, by: Hirer, asked: Sequence[Message], web: Web
    ) -> WorkNode | None:
        """Start new work that goes on from this ended node, in the words of a person's messages.
        Return None if it goes on in the thread of the node."""
        return None

    def page_read(self, tx: Tx, node: WorkNode, page: WebPage) -> None:
        """Keep a page that this work has opened."""

    def sources(self, tx: Tx, node: WorkNode) -> tuple[str, Label]:
        """Return what the result of this work rests on, as sections of a text, with its label."""
        return "", CLEAN


TASK = KindVerbs()


def verbs_of(node: WorkNode) -> KindVerbs:
    return cast(KindVerbs, found_at(node.kind.verbs))
