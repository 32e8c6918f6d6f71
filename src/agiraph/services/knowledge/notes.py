"""Notes: which of an agent's files can be found, and what became of those a person confirmed."""

from collections.abc import Mapping

from agiraph.domain.agents import Agent
from agiraph.domain.events.knowledge import MemoryWritten
from agiraph.domain.knowledge import NoteDraft
from agiraph.store import passages
from agiraph.store.knowledge import DRAFTS
from agiraph.store.tx import Tx


def is_stale(tx: Tx, agent: Agent, files: Mapping[str, str]) -> bool:
    """Whether files are there, changed or gone that a search does not know of."""
    known = passages.known(tx, team_id=agent.team_id, kind="note", owner=agent.id)
    return known != {path: passages.fingerprint("", text) for path, text in files.items()}


def index(tx: Tx, agent: Agent, files: Mapping[str, str]) -> None:
    """Let exactly these files be found, by their full paths."""
    known = passages.known(tx, team_id=agent.team_id, kind="note", owner=agent.id)
    for path in known.keys() - files.keys():
        passages.drop(tx, team_id=agent.team_id, kind="note", owner=agent.id, ref=path)
    for path, text in files.items():
        passages.put(tx, team_id=agent.team_id, kind="note", owner=agent.id, ref=path, text=text)


def wrote(tx: Tx, agent: Agent, path: str, files: Mapping[str, str]) -> None:
    """Say that a note was written, and let it be found."""
    if is_stale(tx, agent, files):
        tx.emit(agent.team_id, MemoryWritten(agent_id=agent.id, path=path))
        index(tx, agent, files)


def settled(tx: Tx, draft: NoteDraft) -> None:
    """A note that a person confirmed is in its file."""
    DRAFTS.update(tx, draft.id, status="written")
