"""Feature verbs: what features do and say in transactions of the core, and what the end, the state
and a late answer of work mean, by its kind."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import cast

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.features import brought, found_at
from agiraph.core.domain.ids import AgentId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Failed
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.records.digest import Entry
from agiraph.core.domain.text.fence import Line
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.members.roster import Hirer
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


class FeatureVerbs:
    """Those of a feature that has nothing to say; each replaces the ones that it needs."""

    def agent_idle(self, tx: Tx, agent: Agent, last: WorkNode) -> None:
        """Do what follows the last open work of an agent. The caller holds the agent's row lock."""

    def remark(self, tx: Tx, node: WorkNode) -> str:
        """Return a sentence for the person who is sent the result of a node, or nothing."""
        return ""

    def about_person(
        self, tx: Tx, agent: Agent, person_id: PersonId, asked: Sequence[Message]
    ) -> list[Line]:
        """Return what an agent knows of a person, first what fits the messages that they sent."""
        return []

    def about(self, tx: Tx, agent_id: AgentId, question: str) -> list[str]:
        """Return lines on what an agent knows about a question, without untrusted text."""
        return []

    def keep_fact(
        self, tx: Tx, lease: Lease, agent: Agent, statement: str, *, label: Label
    ) -> None:
        """Keep for an agent what the leased work has found out for it."""

    def undo_act(self, tx: Tx, reply: Message, act: Act, *, since: datetime) -> bool:
        """Undo an act of a reply that began then; raise `Conflict` if it cannot be undone any more.
        Return False for an act of others."""
        return False

    def entries(self, tx: Tx, team_id: TeamId) -> list[Entry]:
        """Return what a person may decide on in a team."""
        return []

    def decide(self, tx: Tx, identity: str, *, confirms: bool, person_id: PersonId) -> bool:
        """Confirm or reject an entry for a person. Return False for an entry of others."""
        return False

    def set_aside(
        self, tx: Tx, lease: Lease, agent: Agent, *, path: str, content: str, label: Label
    ) -> bool:
        """Keep labelled words for a file of an agent until a person confirms them. Return False if
        they are not kept."""
        return False

    def file_read(self, tx: Tx, agent: Agent, path: str) -> None:
        """Record that an agent has read what was set aside for a file, at its path in the team."""


@cache
def find_verbs() -> tuple[FeatureVerbs, ...]:
    """Return the verbs of all features that have some."""
    return tuple(cast(list[FeatureVerbs], brought("verbs")))
