"""Moments: what knowledge does and says in transactions of the core."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.ids import AgentId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.records.digest import Entry, EntryKind
from agiraph.core.domain.text.fence import Line
from agiraph.core.domain.text.passages import search_words, words
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.file_versions import DAY, UNVERIFIED
from agiraph.core.services.board.feature_verbs import FeatureVerbs
from agiraph.core.services.triggers import firing
from agiraph.core.store.texts.file_labels import PREFIX, FileLabel
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import recall, rows
from agiraph.features.knowledge.verbs import files, items, notes, reflection

LOGS_FOR = timedelta(days=1)
"""How long after its day a daily log is read by later work, and shown in the digest."""
AT, HASH_CHARACTERS = "@", 16
"""The id of a file's entry ends with the beginning of its hash."""
_ACTS = frozenset({"remembered", "forgot"})


class _Moments(FeatureVerbs):
    def agent_idle(self, tx: Tx, agent: Agent, last: WorkNode) -> None:
        # A run that found nothing to do needs no reflection.
        if last.kind.is_reflected_on and not firing.found_nothing_to_do(last):
            reflection.start(tx, agent, last)

    def remark(self, tx: Tx, node: WorkNode) -> str:
        return files.remark_on_memory(tx, node.team_id, since=node.created_at)

    def about_person(
        self, tx: Tx, agent: Agent, person_id: PersonId, asked: Sequence[Message]
    ) -> list[Line]:
        said = {word for message in asked for word in search_words(message.text)}
        memories = items.known_of(tx, agent.id, person_id)
        known = sorted(memories, key=lambda m: -len(said & {*words(m.content)}))
        lines = [Line(line) for line in recall.as_lines([item for item in known if not item.label])]
        return lines + [Line(recall.as_lines([i])[0], i.label) for i in known if i.label]

    def about(self, tx: Tx, agent_id: AgentId, question: str) -> list[str]:
        asked = search_words(question)
        fitting = [
            insight
            for insight in recall.for_work(tx, agent_id, question)
            if not insight.label and not set(asked).isdisjoint(words(insight.content))
        ]
        return recall.as_lines(fitting, ids=False)

    def keep_fact(
        self, tx: Tx, lease: Lease, agent: Agent, statement: str, *, label: Label
    ) -> None:
        items.learn(
            tx,
            agent,
            "fact",
            statement,
            author=lease.agent_id,
            source_thread_id=lease.thread_id,
            label=label,
        )

    def undo_act(self, tx: Tx, reply: Message, act: Act, *, since: datetime) -> bool:
        if act.kind not in _ACTS:
            return False
        made = rows.changes_between(tx, reply.team_id, since, reply.created_at)
        is_removal = act.kind == "forgot"
        found = [
            change
            for change in made
            if any(touched.id == act.about for touched in change.touched)
            and (change.verb == "removed") == is_removal
        ]
        if not found:
            raise Conflict("It was known before this reply, which has changed nothing.")
        if found[-1].undone_at is not None:
            raise Conflict("It was undone already, under Memory.")
        try:
            items.undo(tx, found[-1].id)
        except Refused:
            raise Conflict("It was changed again since then. Change it under Memory.") from None
        return True

    def entries(self, tx: Tx, team_id: TeamId) -> list[Entry]:
        return [
            *(_of_item("pending", item) for item in items.pending(tx, team_id)),
            *(_of_item("unverified", item) for item in items.unverified(tx, team_id)),
            *(_of_file(f) for f in files.labelled(tx, team_id) if not _is_old_log(f, tx.now)),
        ]

    def decide(self, tx: Tx, identity: str, *, confirms: bool, person_id: PersonId) -> bool:
        if confirms and identity.startswith(PREFIX):
            file_id, _, beginning = identity.partition(AT)
            files.confirm(tx, file_id, author=person_id, digest=beginning)
        elif confirms:
            items.confirm(tx, identity, author=person_id)
        else:
            items.reject(tx, identity, author=person_id)
        return True

    def set_aside(
        self, tx: Tx, lease: Lease, agent: Agent, *, path: str, content: str, label: Label
    ) -> bool:
        of_thread = lease.thread_id
        notes.keep_unverified(
            tx, agent, path=path, content=content, thread_id=of_thread, label=label
        )
        return True

    def file_read(self, tx: Tx, agent: Agent, path: str) -> None:
        notes.record_use(tx, agent.id, {path.partition(f"{UNVERIFIED}/")[2]})


def _of_item(kind: EntryKind, item: items.Unconfirmed) -> Entry:
    label: Label = item.label
    return Entry(
        id=item.id,
        kind=kind,
        title=item.kind,
        text=item.text,
        source=str(label) if label else "",
        created_at=item.created_at,
        agent_id=item.agent_id,
    )


def _of_file(file: FileLabel) -> Entry:
    return Entry(
        # With the hash of what was written: a person confirms the words that they have read, and
        # the row of a file keeps its id when the file is written anew.
        id=f"{file.id}{AT}{file.hash[:HASH_CHARACTERS]}",
        kind="file",
        title=f"file {file.path}",
        text=file.path,
        source=str(file.label),
        created_at=file.created_at,
    )


def _is_old_log(file: FileLabel, now: datetime) -> bool:
    """Whether a file is the log of a day that no prompt shows any more."""
    day = DAY.fullmatch(file.path.rpartition("/")[2])
    return day is not None and day[1] < f"{now - LOGS_FOR:%Y-%m-%d}"


MOMENTS = _Moments()
