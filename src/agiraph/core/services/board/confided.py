"""Confided: what people wrote to one agent stands in nothing that another agent looks up."""

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.text.fence import one_line
from agiraph.core.services.board import planning
from agiraph.core.services.board.texts import first_line
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx

SHORTEST = 12
"""Characters of the shortest words that are hidden: fewer stand anywhere by chance."""
INSTEAD = "(what the person wrote to {name})"


class Confided:
    """The words of people to the other agents of a team that this one was not told, too."""

    def __init__(self, tx: Tx, agent: Agent) -> None:
        own, others = messages.told_by_people(tx, agent.team_id, agent.id)
        heard = "\n".join(own)
        names = {identity: planning.name_of(tx, identity) for _, identity in others}
        hidden = {
            words: INSTEAD.format(name=names[identity])
            for text, identity in others
            if text not in heard
            for words in (text.strip(), one_line(text), first_line(text))
            if len(words) >= SHORTEST and words not in heard
        }
        # The longest first: a title is the beginning of a message.
        self._hidden = sorted(hidden.items(), key=lambda pair: -len(pair[0]))

    def hide(self, text: str) -> str:
        """Return a text with the name of whom it was written to instead of such words."""
        for words, instead in self._hidden:
            text = text.replace(words, instead)
        return text
