"""Notes: keep the search index of an agent's note files, and the state of confirmed drafts."""

from collections.abc import Mapping

from agiraph.domain.agents import Agent
from agiraph.domain.events.knowledge import MemoryWritten
from agiraph.domain.knowledge import NoteDraft
from agiraph.store import passages
from agiraph.store.knowledge import DRAFTS
from agiraph.store.tx import Tx


def is_stale(tx: Tx, agent: Agent, files: Mapping[str, str]) -> bool:
    """Tell whether the search index differs from these files. `files` maps full paths to texts."""
    known = passages.known(tx, team_id=agent.team_id, kind="note", owner=agent.id)
    return known != {path: passages.fingerprint("", text) for path, text in files.items()}


def index(tx: Tx, agent: Agent, files: Mapping[str, str]) -> None:
    """Make the search index hold exactly these files."""
    known = passages.known(tx, team_id=agent.team_id, kind="note", owner=agent.id)
    for path in known.keys() - files.keys():
        passages.drop(tx, team_id=agent.team_id, kind="note", owner=agent.id, ref=path)
    for path, text in files.items():
        passages.put(tx, team_id=agent.team_id, kind="note", owner=agent.id, ref=path, text=text)


def record_write(tx: Tx, agent: Agent, path: str, files: Mapping[str, str]) -> None:
    """Emit that a note was written and index it, unless a retry has nothing new to record."""
    # The file was written before this transaction; a crash in between repeats the call.
    if is_stale(tx, agent, files):
        tx.emit(agent.team_id, MemoryWritten(agent_id=agent.id, path=path))
        index(tx, agent, files)


def mark_written(tx: Tx, draft: NoteDraft) -> None:
    """Record that a confirmed draft is in its file."""
    DRAFTS.update(tx, draft.id, status="written")
