"""Notes: keep an agent's notes with untrusted text, and the search index of its note files."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from agiraph.api.feature_views.known import ChangedItem, ChangeVerb, Note, NoteStatus
from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.events.knowledge import KnowledgePending, MemoryWritten
from agiraph.core.domain.ids import SYSTEM, AgentId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN, Label
from agiraph.core.domain.records.notes import fits, query_for
from agiraph.core.domain.text.passages import search_words
from agiraph.core.home.file_versions import NO_SECRETS, UNVERIFIED, is_unverified
from agiraph.core.store.rows import to_text
from agiraph.core.store.texts import file_labels, passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import UNVERIFIED_FOR
from agiraph.features.knowledge.rows import NOTES
from agiraph.features.knowledge.verbs import changes
from agiraph.redaction import looks_secret

PREFIXES = ("note_", "draft_")
"""How the ids of notes begin; those of an earlier version with `draft_`."""
MAX_TITLES = 30
"""Unverified notes whose titles a prompt lists."""
MAX_SHOWN_CHARS = 4000
"""Characters of the unverified notes that a prompt shows."""
SECTION_CHARS = 1500
"""Characters of one section of an unverified note in a prompt."""
_USE_NOTED_EVERY = timedelta(days=1)


def keep_pending(
    tx: Tx, agent: Agent, *, path: str, content: str, thread_id: ThreadId, label: Label
) -> Note:
    """Keep a note until a person has read it. The same note of the same thread is kept once."""
    return _keep(tx, agent, path, content, thread_id, label, "pending")


def keep_unverified(
    tx: Tx,
    agent: Agent,
    *,
    path: str,
    content: str,
    thread_id: ThreadId,
    label: Label,
    is_filed: bool = False,
) -> Note:
    """Store an unverified note; it replaces an earlier unverified note with the same path.

    With `is_filed` the caller writes the note's file after this transaction; otherwise the agent's
    next node writes it. To store the same text from the same thread again changes nothing.
    """
    for earlier in rows.unverified_notes_at(tx, agent.id, {path}):
        if earlier.id != _identity(agent.id, thread_id, path, content):
            NOTES.update(tx, earlier.id, status="superseded", filed_at=None)
    note = _keep(tx, agent, path, content, thread_id, label, "unverified")
    if is_filed and note.status == "unverified":
        NOTES.update(tx, note.id, filed_at=tx.now)
        note = replace(note, filed_at=tx.now)
    return note


def _keep(
    tx: Tx,
    agent: Agent,
    path: str,
    content: str,
    thread_id: ThreadId,
    label: Label,
    status: NoteStatus,
) -> Note:
    if looks_secret(content):
        raise Refused(NO_SECRETS)
    if rows.was_rejected(tx, agent.id, path, content):
        raise Refused(f"Not kept: a person has rejected this note for {path!r}. Leave it out.")
    identity = _identity(agent.id, thread_id, path, content)
    # A missing row cannot be locked. If a fenced run of the thread stores the same note at this
    # moment, the primary key refuses one of the two.
    if (known := NOTES.find(tx, identity, lock=True)) is not None:
        # Written again after another text had taken its place; what a person decided stays.
        if known.status not in ("superseded", "expired"):
            return known
        NOTES.update(tx, identity, status=status, created_at=tx.now, label=label)
        return replace(known, status=status, created_at=tx.now, label=label)
    note = Note(
        id=identity,
        team_id=agent.team_id,
        agent_id=agent.id,
        path=path,
        content=content,
        created_at=tx.now,
        author=agent.id,
        source_thread_id=thread_id,
        label=label,
        status=status,
    )
    NOTES.insert(tx, note)
    if status == "pending":
        tx.emit(agent.team_id, KnowledgePending(id=note.id, agent_id=agent.id, path=path))
    else:
        written = f"{UNVERIFIED}/{path}"
        tx.emit(agent.team_id, MemoryWritten(agent_id=agent.id, id=note.id, path=written))
    return note


def _identity(agent_id: AgentId, thread_id: ThreadId, path: str, content: str) -> str:
    digest = hashlib.sha256("\0".join((agent_id, thread_id, path, to_text(content))).encode())
    return f"note_{digest.hexdigest()[:24]}"


def is_note(item_id: str) -> bool:
    """Whether an id is that of a note."""
    return item_id.startswith(PREFIXES)


def pending(tx: Tx, team_id: TeamId | None = None) -> list[Note]:
    """Return the notes that wait for a person, oldest first; of one team or of all."""
    return rows.notes_with_status(tx, "pending", team_id)


def unverified(tx: Tx, team_id: TeamId | None = None) -> list[Note]:
    """Return the notes in unverified/ that have not expired, oldest first; of one team or all."""
    found = rows.notes_with_status(tx, "unverified", team_id)
    return [n for n in found if (n.used_at or n.created_at) > tx.now - UNVERIFIED_FOR]


def confirm(tx: Tx, note_id: str, *, author: str) -> Note:
    """Mark a note as confirmed: a person confirms its exact words. The agent's next work writes
    them, without a label, to the note's file; the change can be undone until then."""
    return _decide(tx, note_id, "confirmed", "confirmed", author)


def reject(tx: Tx, note_id: str, *, author: str) -> Note:
    """Remove a note. If an agent writes the same words again, the note stays removed."""
    return _decide(tx, note_id, "rejected", "rejected", author)


def _decide(tx: Tx, note_id: str, status: NoteStatus, verb: ChangeVerb, author: str) -> Note:
    note = NOTES.get(tx, note_id, lock=True)
    if note.status not in ("pending", "unverified"):
        raise Conflict(f"The note {note_id} is {note.status}: it does not wait for a decision.")
    return _end(tx, note, status, verb, author)


def _end(tx: Tx, note: Note, status: NoteStatus, verb: ChangeVerb, author: str) -> Note:
    NOTES.update(tx, note.id, status=status)
    _drop_passage(tx, note)
    touched = (ChangedItem(id=note.id, before={"status": note.status}),)
    changes.write(tx, note, verb, author, touched)
    return replace(note, status=status)


def _drop_passage(tx: Tx, note: Note) -> None:
    """Take an unverified note out of the search index."""
    name = f"memory/{UNVERIFIED}/{note.path}"
    known = passages.known(tx, team_id=note.team_id, kind="note", owner=note.agent_id)
    for ref in known:
        if ref == name or ref.endswith(f"/{name}"):
            passages.drop(tx, team_id=note.team_id, kind="note", owner=note.agent_id, ref=ref)


def undo(tx: Tx, note_id: str, before: NoteStatus) -> None:
    """Restore the status that a note had before a person decided on it."""
    note = NOTES.get(tx, note_id, lock=True)
    if note.status == "written":
        raise Refused(f"The note is in {note.path} by now; change the file instead.")
    NOTES.update(tx, note_id, status=before)


def mark_filed(tx: Tx, note: Note) -> None:
    """Record that the file of a note is as its status says."""
    match note.status:
        case "confirmed":
            NOTES.update(tx, note.id, status="written", filed_at=None)
        case "unverified":
            NOTES.update(tx, note.id, filed_at=tx.now)
        case _:
            NOTES.update(tx, note.id, filed_at=None)


def record_use(tx: Tx, agent_id: AgentId, paths: Collection[str]) -> None:
    """Let the unverified notes at these paths last as long again, because work has read them."""
    for note in rows.unverified_notes_at(tx, agent_id, paths):
        if note.used_at is None or tx.now - note.used_at > _USE_NOTED_EVERY:
            NOTES.update(tx, note.id, used_at=tx.now)


def expire(tx: Tx, team_id: TeamId) -> int:
    """End the unverified notes that nobody has used for too long; return how many."""
    old = rows.notes_unused_since(tx, team_id, tx.now - UNVERIFIED_FOR)
    for note in old:
        _end(tx, note, "expired", "expired", SYSTEM)
    return len(old)


class FittingNote(NamedTuple):
    """A section of an unverified note that fits a task."""

    name: str
    """The path of the note that the section would be confirmed as."""
    ref: str
    text: str
    label: Label


class Unverified(NamedTuple):
    """The unverified notes of an agent, for the prompt of one task."""

    fitting: tuple[FittingNote, ...] = ()
    others: tuple[rows.NoteTitle, ...] = ()


def for_work(tx: Tx, team: Team, agent: Agent, task: str) -> Unverified:
    """Return the unverified notes that fit the task, the best first, and the titles of others.

    In a team whose trust is strict there are none: they are found by search only.
    """
    if team.trust == "strict" or not (titles := rows.note_titles(tx, agent.id, limit=MAX_TITLES)):
        return Unverified()
    query = query_for(team, agent, task)
    terms = search_words(query)
    hits = passages.find(
        tx, query, team_id=team.id, owner=agent.id, kinds=("note",), limit=passages.CANDIDATES
    )
    fitting: list[FittingNote] = []
    room = MAX_SHOWN_CHARS
    for hit in hits:
        if not (hit.label and is_unverified(hit.ref)):
            continue
        if not fits(f"{hit.title}\n{hit.text}", terms):
            continue
        text = hit.text[:SECTION_CHARS]
        room -= len(text)
        if room < 0:
            break
        name = hit.ref.partition(f"memory/{UNVERIFIED}/")[2]
        fitting.append(FittingNote(name, f"{UNVERIFIED}/{name}", text, hit.label))
    known = {note.name for note in fitting}
    return Unverified(tuple(fitting), tuple(t for t in titles if t.name not in known))


def is_stale(tx: Tx, agent: Agent, files: Mapping[str, str]) -> bool:
    """Tell whether the search index differs from these files. `files` maps full paths to texts."""
    known = passages.known(tx, team_id=agent.team_id, kind="note", owner=agent.id)
    if known != {path: passages.fingerprint("", text) for path, text in files.items()}:
        return True
    labels = {path: label for path, label in labels_of(tx, agent, files).items() if label}
    return labels != passages.labels(tx, team_id=agent.team_id, kind="note", owner=agent.id)


def labels_of(tx: Tx, agent: Agent, files: Mapping[str, str]) -> dict[str, Label]:
    """Return the label of each of these files, by its path in the team's folder."""
    known = {file.path: file.label for file in file_labels.under(tx, agent.team_id)}
    return {p: known.get(p, UNKNOWN if is_unverified(p) else CLEAN) for p in files}


def index(tx: Tx, agent: Agent, files: Mapping[str, str]) -> None:
    """Make the search index hold exactly these files, each with its label."""
    team_id, owner = agent.team_id, agent.id
    labels = labels_of(tx, agent, files)
    before = passages.labels(tx, team_id=team_id, kind="note", owner=owner)
    for path in passages.known(tx, team_id=team_id, kind="note", owner=owner):
        # `passages.put` keeps the entry of a text that has not changed, and its label with it.
        if path not in files or before.get(path, CLEAN) != labels[path]:
            passages.drop(tx, team_id=team_id, kind="note", owner=owner, ref=path)
    for path, text in files.items():
        label = labels[path]
        passages.put(
            tx, team_id=team_id, kind="note", owner=owner, ref=path, text=text, label=label
        )


def index_one(tx: Tx, agent: Agent, path: str, text: str, label: Label) -> None:
    """Put one file into the search index in place of what it held before."""
    team_id = agent.team_id
    passages.put(tx, team_id=team_id, kind="note", owner=agent.id, ref=path, text=text, label=label)


def record_write(tx: Tx, agent: Agent, path: str, files: Mapping[str, str]) -> None:
    """Emit that a note was written and index it, unless a retry has nothing new to record."""
    # The file was written before this transaction; a crash in between repeats the call.
    if is_stale(tx, agent, files):
        tx.emit(agent.team_id, MemoryWritten(agent_id=agent.id, path=path))
        index(tx, agent, files)
